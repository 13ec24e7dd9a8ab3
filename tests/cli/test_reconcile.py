"""`cultureval reconcile`: the forms of a benchmark on the same rows, with made and with real rows."""

import csv
import json
from pathlib import Path

import faulty_server
import pytest
import yaml
from faulty_server import MODEL, FaultyServer
from parity_rows import TABLE
from transformers import AutoTokenizer

from benchmarks.end_to_end_runs import data_root
from cultureval.reports.reconcile import forms
from cultureval.runtime.smollm2 import gguf_file

pytest.importorskip("lm_eval")
LETTERS = {"Latin": "ABCD", "Arabic": "أبجد"}


def write_rows(root: Path, subset: str, golds: str) -> None:
    """Rows of ArabicMMLU in which the right option is named by the question."""
    rows = []
    for number, gold in enumerate(golds):
        words = [f"كلمة {number}{letter}" for letter in "ABCD"]
        row = {"Question": f"ما هي «{words['ABCD'.index(gold)]}»؟", "Answer Key": gold, "Context": None, "Level": None}
        row |= {f"Option {place}": word for place, word in enumerate([*words, None], start=1)}
        rows.append(row | {"Subject": "Driving Test", "Country": None})
    folder = root / "MBZUAI" / "ArabicMMLU"
    (folder / subset).mkdir(parents=True)
    (folder / subset / "test.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    declared = [{"config_name": subset, "data_files": [{"split": "test", "path": f"{subset}/test.jsonl"}]}]
    (folder / "README.md").write_text(f"---\n{json.dumps({'configs': declared})}\n---\n", encoding="utf-8")


@pytest.fixture
def some_forms(tmp_path, monkeypatch):
    """A table of forms with those whose names are given."""

    def keep(*names: str) -> None:
        table = [row for row in forms.published_rows(forms.FORMS) if row["form"] in names]
        with (tmp_path / "forms.csv").open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(table[0]))
            writer.writeheader()
            writer.writerows(row for row in table if row["benchmark"] == "ArabicMMLU")
        monkeypatch.setattr(forms, "FORMS", tmp_path / "forms.csv")

    return keep


@pytest.fixture
def reads(monkeypatch, tokenizer_folder):
    """A server's model that finds the answer where its label is a letter of one alphabet, and else does not."""
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)

    def learn(alphabet: str) -> None:
        def logprob(prefix: list[int], token: int) -> float:
            label, text = tokenizer.decode([token]).strip(), tokenizer.decode(prefix, skip_special_tokens=True)
            if len(label) != 1 or label not in LETTERS[alphabet] or not text.rstrip().endswith(":"):
                return -3.0
            wanted = text.rpartition("«")[2].partition("»")[0]
            lines = [line.strip() for line in text.splitlines()]
            return -0.1 if any(line.startswith(f"{label}. {wanted}") for line in lines) else -6.0

        monkeypatch.setattr(faulty_server, "token_logprob", logprob)

    return learn


def test_a_model_that_reads_latin_labels_alone_is_at_chance_in_the_arabic_forms_alone(
    tmp_path, tokenizer_folder, run_here, some_forms, reads
):
    write_rows(tmp_path / "data", "Driving Test", "ABCD" * 6)
    some_forms("lm-eval", "OALL", "QIMMA", "LightEval MCF")
    reads("Latin")
    with FaultyServer(features={"prompt_logprobs"}) as server:
        settings = {"model": MODEL, "base_url": server.url, "tokenizer": tokenizer_folder}
        (tmp_path / "server.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        told = run_here("reconcile", "server.yaml", "arabicmmlu", "--data", "data", "--json", HF_HUB_OFFLINE="1")
        asked = len(server.requests)
        again = run_here("reconcile", "server.yaml", "arabicmmlu", "--data", "data", "--items", 2, HF_HUB_OFFLINE="1")
        assert len(server.requests) == asked, "the second run asks nothing"
    assert told.returncode == 0, told.stderr
    (found,) = json.loads(told.stdout)["benchmarks"]
    by_name = {form["form"]: form for form in found["forms"]}
    assert found["rows"] == 24 and {form["n"] for form in found["forms"]} == {24}
    assert {name: form["mark"] for name, form in by_name.items()} == {
        "lm-eval": "",
        "OALL": "at chance",
        "QIMMA": "at chance",
        "LightEval MCF": "",
    }
    assert by_name["lm-eval"]["value"] == by_name["LightEval MCF"]["value"] == 1
    assert by_name["OALL"]["value"] == by_name["QIMMA"]["value"] == by_name["OALL"]["chance"] == 0.25
    best = found["factors"][0]
    assert best["factors"][0] == "alphabet" and (best["higher"], best["lower"]) == ("Latin", "Arabic")
    assert best["share"] == pytest.approx(1) and best["difference"] == 0.75 and best["low"] > 0.5
    assert found["differences"][0]["p_holm"] < 0.01
    assert "Latin is 75.00" in again.stdout and "Forms differ on 18 of 24 rows" in again.stdout
    tables = sorted((tmp_path / "results").rglob("ArabicMMLU-items.csv"))
    with tables[-1].open(encoding="utf-8", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == 18


def test_what_cannot_be_compared_is_refused_with_its_reason(tmp_path, refusal, some_forms):
    write_rows(tmp_path / "data", "Driving Test", "ABCD")
    assert "'xmmlu'" in refusal("reconcile", "model", "xmmlu") and "CMMLU" in refusal("reconcile", "model", "xmmlu")
    told = refusal("reconcile", "model", "exams", "--data", "data", HF_HUB_OFFLINE="1")
    assert "fewer than two forms" in told and "OALL: lighteval:arabic_exams" in told
    some_forms("lm-eval", "QIMMA, generated")
    told = refusal("reconcile", "model", "arabicmmlu", "--data", "data", HF_HUB_OFFLINE="1")
    assert "fewer than two forms" in told and "add --generated" in told


@pytest.mark.slow
@pytest.mark.skipif(not TABLE.is_file(), reason="real ArabicMMLU rows are not part of the repository")
@pytest.mark.skipif(gguf_file() is None, reason="the model's wheel is not installed")
def test_a_real_model_on_real_rows(tmp_path, cultureval):
    """QIMMA's prompt is OALL's but for the passage, and both average subsets: equal answers where no row has one."""
    root = Path(data_root(tmp_path, TABLE))
    folder = root / "MBZUAI" / "ArabicMMLU"
    for place in folder.iterdir():
        if place.is_dir() and place.name not in ("Driving Test", "Geography (High School)"):
            for file in place.iterdir():
                file.unlink()
    declared = json.loads((folder / "README.md").read_text().split("---")[1])["configs"]
    kept = [config for config in declared if any((folder / config["config_name"]).iterdir())]
    (folder / "README.md").write_text(f"---\n{json.dumps({'configs': kept})}\n---\n", encoding="utf-8")
    told = cultureval("reconcile", "smollm2", "--data", root, "--limit", 4, "--json", HF_HUB_OFFLINE="1")
    assert told.returncode == 0, told.stderr
    (found,) = json.loads(told.stdout)["benchmarks"]
    by_name = {form["form"]: form for form in found["forms"]}
    assert found["benchmark"] == "ArabicMMLU" and len(by_name) == 8 and found["rows"] == 8
    assert {form["n"] for form in found["forms"]} == {8} and {form["average"] for form in found["forms"]} == {
        "micro",
        "macro",
    }
    assert by_name["QIMMA"]["value"] == by_name["OALL"]["value"]
    assert len(found["differences"]) == 28 and found["factors"]
    assert found["not_run"].keys() == {"QIMMA, generated"}
