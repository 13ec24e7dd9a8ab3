"""`python -m benchmarks`: its JSON, and that every harness gives the same scores."""

import json
import sys

import pytest
import typer
from asked_commands import PYTHON, forking_server
from forked_commands import own_variables
from tiny_models import folder_of
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.accelerator import bench_accelerator
from benchmarks.generation import bench_generation
from benchmarks.scoring import bench_scoring
from benchmarks.scoring_runs import Bench, read_questions
from cultureval.runtime.errors import CulturevalError

KEYS = {"ours_s", "lighteval_s", "lm_eval_s", "limit_s", "speedup_vs_lighteval", "speedup_vs_lm_eval"}
KEYS |= {"ratio_to_limit", "one_pass_s", "ratio_to_one_pass", "peak_mib", "max_abs_difference"}


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CULTUREVAL_JOURNAL", raising=False)
    monkeypatch.delenv("CULTUREVAL_RESUME", raising=False)
    return runner_of(bench_scoring)


@pytest.fixture
def run_generation(run):
    return runner_of(bench_generation)


def runner_of(command):
    app = typer.Typer()
    app.command()(command)
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("chat_template", [False, True])
def test_the_json_alone_goes_to_stdout_and_all_harnesses_agree(run, chat_template):
    options = ["--model", folder_of("llama", chat_template), "--questions", "3", "--repeats", "1", "--json"]
    names = ["letters"] if chat_template else ["letters", "full_text", "ranking_100"]
    result = run(*options, *(part for name in names for part in ("--scenario", name)))
    assert result.exit_code == 0, result.output
    scenarios = json.loads(result.stdout)["scenarios"]
    assert list(scenarios) == names
    for numbers in scenarios.values():
        assert set(numbers) >= KEYS
        assert numbers["max_abs_difference"] < 1e-3
        assert numbers["ours_s"] > 0 and numbers["limit_s"] > 0
        assert numbers["speedup_vs_lighteval"] == pytest.approx(numbers["lighteval_s"] / numbers["ours_s"], rel=0.3)


def test_the_accelerators_benchmark_runs_on_a_cpu_and_every_row_equals_plain_passes(run):
    sizes = ["--rows", "30", "--rankings", "2", "--answers", "3", "--new-tokens", "5", "--others", "4"]
    options = ["--shape", "tiny", "--device", "cpu", "--dtype", "float32", "--batch-size", "4", "--json"]
    result = runner_of(bench_accelerator)(*sizes, *options)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert list(found) == [f"tiny {name}" for name in ("letters", "full text", "rankings", "answers")]
    assert all(numbers["equal"] == 1 and numbers["lm-eval"] > 0 for numbers in found.values())
    assert all(numbers["max_difference"] < 1e-3 for name, numbers in found.items() if name != "tiny answers")
    assert found["tiny rankings"]["saved"] > 0.9  # 64 candidates share a prompt


def test_the_shipped_rows_give_a_hundred_candidates_to_the_models_own_tokenizer(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    bench = Bench(tmp_path, None, read_questions(None), 1, 1, 1, "cpu", "float32")
    prompt, candidates = bench.ranking()
    assert len(set(candidates)) == 100
    assert len(bench.ours.tokenizer(prompt)["input_ids"]) == pytest.approx(400, abs=10)


@pytest.mark.parametrize("choices", ["null", '"أب"', "[]", '["أ", 2]', '["أ", ""]'])
def test_a_bad_question_is_named(tmp_path, choices):
    data = tmp_path / "data.jsonl"
    data.write_text(f'{{"prompt": "سؤال", "choices": ["أ"]}}\n{{"prompt": "سؤال", "choices": {choices}}}\n')
    with pytest.raises(CulturevalError, match="row 2"):
        read_questions(data)
    data.write_bytes(b"\n")
    with pytest.raises(CulturevalError, match="holds no questions"):
        read_questions(data)


def test_arabicmmlu_is_read_in_its_own_columns(tmp_path):
    csv, jsonl = tmp_path / "ArabicMMLU.csv", tmp_path / "questions.jsonl"
    csv.write_text("Question,Context,Option 1,Option 2,Option 3\nأين؟,نص,07,لا,\n", encoding="utf-8")
    (question,) = read_questions(csv)
    assert question.choices == [" 07", " لا"]
    assert "نص\nأين؟" in question.prompt and "أ. 07\nب. لا" in question.prompt
    jsonl.write_text(json.dumps(question._asdict()), encoding="utf-8")
    assert read_questions(jsonl) == [question]


def test_bad_input_is_one_error(run, tmp_path):
    result = run("--model", folder_of("llama"), "--scenario", "numbers")
    assert isinstance(result.exception, CulturevalError)
    assert "letters" in str(result.exception)
    assert run("--model", tmp_path / "nowhere").exit_code == 2
    data = tmp_path / "data.jsonl"
    data.write_text('{"prompt": "سؤال", "choices": ["أ", "أ"]}\n', encoding="utf-8")
    result = run("--model", folder_of("llama"), "--data", data)
    assert "ranking_100 needs more data" in str(result.exception)


@pytest.fixture
def bench(encoder_variables, monkeypatch, tmp_path):
    """Runs `python -m benchmarks` here; commands that it times are forked: their seconds are none of a start."""
    python = tmp_path / "python"
    python.write_text(PYTHON, encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with forking_server() as address:
        for name, value in (own_variables(tmp_path) | encoder_variables | {"COMMANDS": address}).items():
            monkeypatch.setenv(name, value)
        yield lambda *words: CliRunner().invoke(app, [*words], catch_exceptions=False)


def test_figures_of_classifiers(bench):
    done = bench("classifiers", "--texts", "20", "--repeats", "1", "--bert", "tiny")
    assert done.exit_code == 0 and "one at a time / batched:" in done.stdout, done.stderr
    assert "65% of several lines" in done.stdout and "all profiles / the paper's:" in done.stdout


def test_the_whole_command_and_lm_eval_answer_the_same(bench, tiny_lm, tmp_path):
    table = tmp_path / "table.csv"
    row = "{number},{number},,,Other,Driving Test,,سؤال {number}؟,,A,نعم,لا,,,,0\n"
    header = "#,ID,Source,Country,Group,Subject,Level,Question,Context,Answer Key,Option 1,Option 2,Option 3,Option 4,"
    rows = "".join(row.format(number=number) for number in range(3))
    table.write_text(f"{header}Option 5,is_few_shot\n{rows}", encoding="utf-8")
    done = bench("end-to-end", "--model", str(tiny_lm), "--data", str(table), "--json")
    assert done.exit_code == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["rows_with_same_scores"] == figures["rows"] == 3
    assert figures["max_abs_difference"] < 1e-4
    assert 0 < figures["model_s"] < figures["ours_s"] and figures["lm_eval_s"] > 0


def test_generated_texts_are_those_of_the_other_harnesses(run_generation):
    options = ["--model", folder_of("llama"), "--prompts", "6", "--shared", "60", "--new-tokens", "5", "--json"]
    result = run_generation(*options)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["generation"]
    assert list(found) == ["ours", "generate", "lighteval", "lm_eval"]
    assert all(numbers["same_texts"] == 1.0 for numbers in found.values()), found
    assert 30 / found["ours"]["tokens_per_second"] == pytest.approx(found["ours"]["seconds"], abs=0.006)
