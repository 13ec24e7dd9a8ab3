"""AL-QASIDA's sets built and read against the released files (JHU-CLSP/al-qasida at 34e4dba)."""

import ast
import csv
import json
from pathlib import Path

import pytest

from cultureval.runtime.data_options import DataOptions
from cultureval.tasks.alqasida.sets import DIALECTS, FLORES_CODES, published_sets, shuffled
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.reading import forget_files, prepare_subset

REPOSITORY = Path(__file__).parents[2] / "../shared/data/alqasida"
DATA = REPOSITORY / "data_processing" / "data"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the released files are not here")


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "root" / "JHU-CLSP"
    folder.mkdir(parents=True)
    (folder / "al-qasida").symlink_to(REPOSITORY.resolve())
    return tmp_path / "root"


def prepared(name, root, form):
    forget_files()
    subset = prepare_subset(all_tasks()[name], DataOptions(root=root, form=form))
    split = {file.stem: file.read_text(encoding="utf-8").splitlines() for file in subset.folder.glob("*.jsonl")}
    return {name: [json.loads(line) for line in lines] for name, lines in split.items()}, subset.report


def test_the_templates_are_those_of_all_28_sets():
    numbers = json.loads((REPOSITORY / "template_numbers.json").read_text(encoding="utf-8"))
    assert {name for name, one in published_sets().items() if one.templates} == set(numbers)
    for name, rows in numbers.items():
        places = published_sets()[name].templates
        assert len(places) == len(rows) and all(place in row for place, row in zip(places, rows, strict=True))


@pytest.mark.parametrize("code", ["mar", "pse", "sau"])
def test_owners_of_flores_get_the_published_prompts(root, code, tmp_path):
    """The sentences of the released prompts, put into a file as FLORES-200 has them, among others."""
    file, *_ = REPOSITORY.glob(f"llm_outputs/*_monolingual/DialectID_FLORES_{code}_samples.csv")
    with file.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    prompts = [row.get("prompts") or ast.literal_eval(row["_raw_turns"])[-1]["content"][0]["text"] for row in rows]
    templates = json.loads(next(REPOSITORY.rglob("dial8.json")).read_text(encoding="utf-8"))[code]["all"]
    lines = [f"other {number}" for number in range(1012)]
    places = published_sets()[f"flores_{code}"].templates
    for number, prompt, place in zip(shuffled(1012), prompts, places, strict=False):
        start, end = templates[place].split("{}")
        lines[number] = prompt.removeprefix(start).removesuffix(end)
    folder = tmp_path / "owner" / "JHU-CLSP" / "al-qasida"
    (folder / "devtest").mkdir(parents=True)
    (folder / "devtest" / f"{FLORES_CODES[code]}.devtest").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "dial8.json").write_bytes(next(REPOSITORY.rglob("dial8.json")).read_bytes())
    found, report = prepared(f"alqasida_mono:flores_{code}", tmp_path / "owner", "original")
    assert [row["prompt"] for row in found["test"]] == prompts
    assert report["prompt"] == "published"


def published(*parts):
    with DATA.joinpath(*parts).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_habibi_prompts_regenerate_758_of_758(root):
    found = expected = 0
    for code in DIALECTS:
        rows, report = prepared(f"alqasida_mono:habibi_{code}", root, "original")
        assert report["prompt"] == "published"
        prompts = [row["prompt"] for row in published("mono", "music", "habibi", f"{code}.csv")]
        assert len(rows["test"]) == len(prompts) == all_tasks()[f"alqasida_mono:habibi_{code}"].expected_rows
        found += sum(row["prompt"] == prompt for row, prompt in zip(rows["test"], prompts, strict=True))
        expected += len(prompts)
        assert all(row["template"] and row["location"] for row in rows["test"])
    assert found == expected == 758


@pytest.mark.parametrize("name", ["alqasida_mono:habibi_egy", "alqasida_cross:okapi_mar"])
def test_ready_made_files_are_read_as_they_are(root, name):
    corpus, code = name.rpartition(":")[2].split("_")
    rows, report = prepared(name, root, "curated")
    place = ("mono", "music", "habibi") if corpus == "habibi" else ("xling", "okapi")
    assert [row["prompt"] for row in rows["test"]] == [row["prompt"] for row in published(*place, f"{code}.csv")]
    assert report["rows"] == 100 and {row["dialect"] for row in rows["test"]} == {code}
    if corpus == "okapi":
        places = [row["location"] for row in rows["test"]]
        assert [places.count(place) for place in ("Start", "Middle", "End")] == [34, 33, 33]
        assert len({row["cluster"] for row in rows["test"]}) == 34  # one request, at three places


def test_the_five_examples_are_the_published_prefix(root):
    prefixes = json.loads((REPOSITORY / "eval" / "5shot_prefixes.json").read_text(encoding="utf-8"))["monolingual"]
    for code in DIALECTS:
        rows, _ = prepared(f"alqasida_mono:habibi_{code}", root, "original")
        assert ("few_shot" in rows) == (code in prefixes)
        if code in prefixes:
            blocks = [f"Q: {row['prompt']}\nA: {row['answer']}\n\n" for row in rows["few_shot"]]
            assert len(blocks) == 5 and "".join(blocks) + "Q: " == prefixes[code]
