"""Where the code problems are found, and what of them is refused."""

import gzip
import hashlib
import json
import shutil
from pathlib import Path

import pytest

from cultureval.audit.checks import manifest_row
from cultureval.audit.sources import read_items
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.tasks.manifest import write_manifest
from cultureval.tasks.qimma.code_data import CODE_DATASETS, REPO, hash_of_problems, load_problems
from cultureval.tasks.reading import forget_files

pytestmark = pytest.mark.usefixtures("own_cache")

SAMPLES = samples_root() / REPO
REAL = Path(__file__).parents[2].parent / "shared" / "data" / "evalplus_arabic"


@pytest.fixture
def row():
    return json.loads((SAMPLES / "HumanEvalPlus.jsonl").read_text(encoding="utf-8").splitlines()[0])


def write(root, rows, name="HumanEvalPlus.jsonl"):
    """Writes a data file below a data root, and returns the root."""
    forget_files()
    file = root / REPO / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(root)


@pytest.mark.parametrize("packed", [False, True])
def test_data_may_be_packed_or_not(tmp_path, packed):
    folder = tmp_path / REPO
    folder.mkdir(parents=True)
    for dataset in CODE_DATASETS.values():
        if packed:
            with gzip.open(folder / f"{dataset.file}.gz", "wb") as file:
                file.write((SAMPLES / dataset.file).read_bytes())
        else:
            shutil.copy(SAMPLES / dataset.file, folder)
    for name in CODE_DATASETS:
        found = load_problems(name, str(tmp_path))
        assert dict(found.rows) == dict(load_problems(name, "samples").rows)
        assert len(found.rows) == 6 and found.revision == "local"
        assert found.evalplus_hash == hashlib.md5(found.file_content).hexdigest()


def test_the_same_problems_in_another_order_are_the_same_rows(tmp_path):
    rows = list(load_problems("humaneval", "samples").rows.values())
    changed = [dict(reversed(row.items())) | {"note": "theirs"} for row in reversed(rows)]
    other = [*rows[:-1], rows[-1] | {"base_input": rows[-1]["base_input"][:-1]}]
    hashes = [hash_of_problems(some) for some in (rows, changed, other)]
    assert hashes[0] == hashes[1] != hashes[2]
    found = load_problems("humaneval", write(tmp_path, changed))
    assert found.fingerprint == hashes[0]


def test_a_part_and_refined_prompts_are_handed_to_evalplus_as_a_file(tmp_path, row):
    refined = row["prompt"].replace("إذا بلغ", "إذا وصل")
    (tmp_path / "fixed.csv").write_text(
        'task_id,prompt,Human Check\nHumanEval/9001,"' + refined.replace('"', '""') + '",No\n', encoding="utf-8"
    )
    whole = load_problems("humaneval", "samples")
    part = load_problems("humaneval", "samples", tmp_path / "fixed.csv", limit=2)
    assert list(part.rows) == ["HumanEval/9001", "HumanEval/9002"] and part.refined == 1
    assert part.rows["HumanEval/9001"]["prompt"] == refined != whole.rows["HumanEval/9001"]["prompt"]
    written = [json.loads(line) for line in part.file_content.splitlines()]
    assert {item["task_id"]: item for item in written} == dict(part.rows)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"task_id": "Mbpp/1"}, "HumanEval/"),
        ({"task_id": "HumanEval/٣"}, "task_id"),
        ({"task_id": 3}, "task_id"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": "def f(): '\ufffd'"}, "encoding"),
        ({"entry_point": "os.system"}, "entry_point"),
        ({"base_input": []}, "base_input"),
        ({"base_input": "[[1]]"}, "base_input"),
        ({"plus_input": [1]}, "plus_input"),
        ({"atol": "0"}, "atol"),
        ({"atol": float("nan")}, "atol"),
        ({"canonical_solution": None}, "canonical_solution"),
    ],
)
def test_a_broken_row_is_named(tmp_path, row, change, named):
    broken = row | {"task_id": "HumanEval/2"} | change
    data = write(tmp_path, [row, broken, broken])
    with pytest.raises(CulturevalError, match="row 2 ") as caught:
        load_problems("humaneval", data)
    assert named in str(caught.value)


def test_a_missing_column_and_a_repeated_problem_are_named(tmp_path, row):
    with pytest.raises(CulturevalError, match="no column 'atol'"):
        load_problems("humaneval", write(tmp_path / "a", [{name: row[name] for name in row if name != "atol"}]))
    with pytest.raises(CulturevalError, match="is duplicated"):
        load_problems("humaneval", write(tmp_path / "b", [row, row]))


@pytest.mark.skipif(not REAL.is_dir(), reason="the published files are not on this machine")
@pytest.mark.parametrize(("name", "rows"), [("humaneval", 164), ("mbpp", 378)])
def test_the_published_files_are_known_and_read_as_evalplus_reads_them(name, rows, monkeypatch, tmp_path):
    import importlib

    module = importlib.import_module(f"evalplus.data.{name}")
    found = load_problems(name, str(REAL))
    assert found.other_data == ""
    fewer = [row | {"plus_input": list(row["plus_input"])[:-1]} for row in found.rows.values()]
    for changed in (fewer, list(found.rows.values())[1:]):
        assert hash_of_problems(changed) != CODE_DATASETS[name].published == found.fingerprint
    assert len(found.rows) == rows == CODE_DATASETS[name].rows
    file = tmp_path / CODE_DATASETS[name].file
    file.write_bytes(found.file_content)
    monkeypatch.setattr(module, f"{name.upper()}_OVERRIDE_PATH", str(file))
    load = {"humaneval": "get_human_eval_plus", "mbpp": "get_mbpp_plus"}[name]
    assert found.problems() == getattr(module, load)()
    assert found.evalplus_hash == getattr(module, f"{load}_hash")()


def test_two_files_of_one_data_set_are_refused(tmp_path, row):
    write(tmp_path, [row], "HumanEvalPlus.jsonl.gz")
    with pytest.raises(CulturevalError, match=r"HumanEvalPlus.jsonl, HumanEvalPlus.jsonl.gz are of one split"):
        load_problems("humaneval", write(tmp_path, [row]))


def test_what_a_manifest_discards_is_left_out_and_known(tmp_path):
    task, file = CODE_DATASETS["humaneval"].task, tmp_path / "manifest.jsonl"
    items = read_items([task], DataOptions(root=samples_root()))
    decisions = ["keep", "discard", *["keep"] * len(items)]
    rows = [manifest_row(item, one, [], ["check"]) for item, one in zip(items, decisions, strict=False)]
    manifest = write_manifest(file, rows)
    whole = load_problems("humaneval", "samples")
    with use_settings(current_settings().with_(data_root="samples", manifest=str(file))):
        found = load_problems("humaneval")
    gone = list(whole.rows)[1]
    assert list(found.left_out) == [gone] and list(found.rows) == [name for name in whole.rows if name != gone]
    assert (found.manifest["hash"], found.manifest["discarded"]) == (manifest.hash, 1)
    assert found.fingerprint != whole.fingerprint
