"""Judges in a run of LightEval and afterwards with `cultureval judge`: the real command line and real servers."""

import json
import math
import re
import shutil
from pathlib import Path

import pytest
import yaml
from faulty_server import MODEL, FaultyServer
from PIL import Image
from planted import plant, text_row
from result_files import details_of, results_of

from cultureval.runtime.rounding import without_nan
from cultureval.samples.scripted_judge import scripted_judge

CAPTIONS = {
    "a": ["قطة تنام على كرسي.", "سوق شعبي فيه ناس كتير.", "Consistency: 5/5", "ولد يلعب بالكرة."],
    "b": ["بحر وقوارب.", "", "جمل في الصحراء."],
}
QUESTIONS = {"a": ["كم قطة في الصورة؟", "هل السوق مزدحم؟", "القطة نايمة ولا صاحية؟", "لون القطة إيه؟"], "b": []}


@pytest.fixture
def rows(tmp_path):
    """A data set of two subsets with an image a row."""
    folder = tmp_path / "rows"
    folder.mkdir()
    for name, captions in CAPTIONS.items():
        (folder / name).mkdir()
        lines = []
        for number, _ in enumerate(captions):
            image = f"{name}{number // 2}.png"
            Image.new("RGB", (8, 8), (number * 40, 10, len(name))).save(folder / image)
            line = {"number": f"{name}{number}", "image": image, "reference": "قطة تنام على كرسي."}
            lines.append(line | ({"question": QUESTIONS[name][number]} if QUESTIONS[name] else {}))
        (folder / name / "test.jsonl").write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines))
    return folder


@pytest.fixture
def model_server():
    """A server of the model under evaluation: its captions are those above."""

    def caption(prompt, index):
        name = prompt.split("صف الصورة ")[1].split()[0]
        return CAPTIONS[name[0]][int(name[1:])]

    with FaultyServer(reply=caption) as server:
        yield server


@pytest.fixture
def run(cultureval, no_network, rows, model_server, tmp_path, monkeypatch):
    """Evaluates the captions with LightEval; the servers are on this machine, so the network is not cut."""
    no_network.clear()
    (tmp_path / "model.yaml").write_text(yaml.safe_dump({"model": MODEL, "base_url": model_server.url}))
    from cultureval.models import openai_api

    def evaluate(**environment):
        task_file = tmp_path / "judged_task.py"
        shutil.copy(Path(__file__).parents[1] / "judged_task.py", task_file)
        arguments = ["lighteval", "custom", "model.yaml", openai_api.__file__, "judged:a,judged:b"]
        options = ["--custom-tasks", task_file, "--save-details", "--output-dir", "out"]
        return cultureval(*arguments, *options, JUDGED_ROWS=str(rows), **environment)

    return evaluate


def judge_yaml(path, url, **settings):
    values = {"name": path.stem, "model": "scripted-judge", "base_url": url}
    values |= {"input_token_price": 0.001, "output_token_price": 0.002}
    path.write_text(yaml.safe_dump(values | settings))
    return str(path)


def row_of(rows, number):
    """The metrics of the row with that number; LightEval shuffles rows."""
    return next(row["metric"] for row in rows if row["doc"]["query"].endswith(number))


def test_a_run_with_a_judge_and_the_same_afterwards(run, cultureval, tmp_path):
    with scripted_judge() as url:
        first = judge_yaml(tmp_path / "first.yaml", url)
        done = run(CULTUREVAL_JUDGE=first)
        assert done.returncode == 0, done.stderr[-3000:]
        results = results_of(tmp_path / "out")["results"]
        prefix = "judge_first_image_reference"
        one, two = results["judged:a|0"], results["judged:b|0"]
        assert two[f"{prefix}_fluency"] == 5 and not [name for name in two if "_n_" in name or "missing_as" in name]
        assert one[f"{prefix}_consistency"] == pytest.approx((5 + 1 + 1 + 1) / 4)
        details = details_of(tmp_path / "out")
        best = row_of(details["judged:a|0"], "a0")
        assert best[f"{prefix}_consistency"] == 5
        assert best[prefix]["outcome"] == "scored" and "Consistency: 5/5" in best[prefix]["reply"]
        empty = row_of(details["judged:b|0"], "b1")
        assert math.isnan(empty[f"{prefix}_fluency"]) and "empty" in empty[prefix]["reason"]

        dry = cultureval("judge", "out", "--judge", first, "--dry-run")
        assert "first  total: 0 calls (12 more are in the journal); 2 items cannot" in dry.stdout, dry.stdout
        again = cultureval("judge", "out", "--judge", first)
        assert again.returncode == 0, again.stderr[-2000:]
        assert "it/s" not in again.stderr  # all verdicts are known
        assert "2 of 3" in again.stdout
        saved = {file: json.loads(file.read_text()) for file in (tmp_path / "out" / "results").rglob("*.json")}
        assert len(saved) == 2
        new = saved[max(saved)]["results"]
        for task in ("judged:a|0", "judged:b|0"):
            old = {name: value for name, value in results[task].items() if name.startswith("judge_")}
            assert without_nan(new[task]) == pytest.approx(without_nan(old))


@pytest.mark.slow
def test_afterwards_with_another_judge_on_a_part(run, cultureval, tmp_path):
    assert run().returncode == 0
    (old,) = (tmp_path / "out" / "results").rglob("*.json")
    before = old.read_bytes()
    with scripted_judge() as url:
        judges = [judge_yaml(tmp_path / f"{name}.yaml", url, revision=name) for name in ("x", "y")]
        dry = cultureval("judge", "out", "--judge", ",".join(judges), "--dry-run", "--sample", "2", "--seed", "5")
        assert (
            "Nothing was judged." in dry.stdout and "x  total: 6 calls (0 more are in the journal), " in dry.stdout
        ), dry.stdout + dry.stderr
        done = cultureval("judge", old, "--judge", judges[0], "--judge", judges[1], "--sample", "2", "--seed", "5")
        assert done.returncode == 0, done.stderr[-2000:]
        same = cultureval("judge", "out", "--judge", judges[0], "--sample", "2", "--seed", "5")
        assert same.returncode == 0 and "it/s" not in same.stderr
        other = cultureval("judge", "out", "--judge", judges[0], "--budget", "0.0001", "--no-resume")
        assert other.returncode == 0 and "the budget of 0.0001 is spent" in other.stdout, other.stdout + other.stderr
        assert "INCOMPLETE: judged:a|0, " in other.stdout and "nan" not in other.stdout
    assert old.read_bytes() == before
    files = sorted((tmp_path / "out" / "results").rglob("*.json"))
    assert len(files) == 4  # with what was in flight when the tiny budget was spent
    content = json.loads(files[1].read_text())
    assert content["config_general"]["judged"]["sample"] == 2 and content["config_general"]["judged"]["seed"] == 5
    assert len(content["config_general"]["judged"]["signatures"]) == 4
    record = content["cultureval"]
    assert record["command"][:2] == ["cultureval", "judge"]
    assert [one["text"] for one in record["signatures"]] == content["config_general"]["judged"]["signatures"]
    assert "judge y, jeem_caption_reference" in done.stdout and "Signatures:" in done.stdout


def test_labels(run, cultureval, tmp_path):
    assert run().returncode == 0
    with scripted_judge() as url:
        done = cultureval("judge", "out", "--label", "--judge", judge_yaml(tmp_path / "x.yaml", url))
    assert done.returncode == 0, done.stderr[-2000:]
    content = json.loads(max((tmp_path / "out" / "results").rglob("*.json")).read_text())["results"]
    types = {
        name: content["judged:a|0"][f"judge_x_question_type_{name}"] for name in ("Descriptive", "Yes/No", "unknown")
    }
    assert types == {"Descriptive": 0.25, "Yes/No": 0.25, "unknown": 0}
    assert "judge_x_question_type_Descriptive" not in content["judged:b|0"]
    assert content["judged:b|0"]["judge_x_topic_group_Others"] == 1
    assert re.search(r"Quantitative +0.25 .* 4 of 4", done.stdout), done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--label", "--judge", "x"], "Which results?"),
        (["out", "--judge", "bad.yaml"], "api_key_env"),
        (["out", "--judge", "gpt-4o"], "OPENAI_API_KEY"),
    ],
)
def test_bad_input_is_one_sentence(refusal, tmp_path, arguments, words):
    (tmp_path / "bad.yaml").write_text("{model: m, api_key: sk-secret}")
    row = text_row(0, {"em": 1.0}, judge={"templates": ["jeem_vqa"], "slots": {"question": "؟"}})
    plant(tmp_path / "out", {"jeem_vqa:jo|0": [row]})
    told = refusal("judge", *arguments, OPENAI_API_KEY="")
    assert words in told and told.count("\n") == 1 and "sk-secret" not in told
