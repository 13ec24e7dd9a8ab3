"""Settings: the environment is read in one place, a command's options go over it and leave nothing behind."""

import ast
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from planted import choice_row, plant
from typer.testing import CliRunner

from cultureval.reports import evaluation
from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.errors import CulturevalError, ProblemList, Problems
from cultureval.runtime.model_settings import CheckedModel, read_model_settings
from cultureval.runtime.settings import (
    Settings,
    arguments_of,
    current_settings,
    field_names,
    use_settings,
    variable_of,
)
from cultureval.scripts import evaluate as command
from cultureval.scripts.main import app
from cultureval.tasks.options import all_options, check_variables, evaluation_settings, read_data_options
from cultureval.tasks.preflight import CheckedRun

ROOT = Path(__file__).parents[2]
ROOMS = (
    "audit",
    "tasks",
    "prompts",
    "metrics",
    "judge_prompts",
    "models",
    "runtime",
    "scripts",
    "samples",
    "reports",
    "runs",
)


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in [name for name in os.environ if name.startswith("CULTUREVAL_")]:
        monkeypatch.delenv(name)


def test_our_variables_are_named_where_they_are_declared_and_nowhere_else():
    for path in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        if path != ROOT / "runtime" / "settings.py" and "CULTUREVAL_" in path.read_text(encoding="utf-8"):
            nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
            declared = [node for node in nodes if isinstance(node, ast.Call) and "Option" in ast.unparse(node.func)]
            names = {id(argument) for node in declared for argument in node.args}
            texts = [node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in names]
            assert not [text for text in texts if re.fullmatch(r"CULTUREVAL_[A-Z0-9_]*", str(text))], path


@pytest.fixture
def run(monkeypatch, tmp_path):
    """`cultureval eval` up to its pipeline; what it sees there."""
    seen = []
    saved = plant(tmp_path / "saved", {"qimma_aratrust|0": [choice_row(1, True)]})
    monkeypatch.setattr(command, "go_offline_if_unreachable", lambda: None)

    def run_tasks(model, model_file, tasks, limit, output_dir, saving):
        with ThreadPoolExecutor(1) as pool:
            options = pool.submit(read_data_options).result()
        seen.append((options, current_settings().resume, read_model_settings(model)))
        tracker = SimpleNamespace(save_summary=lambda _: tmp_path, failed_uploads=[], results_file=saved, save=list)
        return SimpleNamespace(tracker=tracker)

    monkeypatch.setattr(evaluation, "preflight", lambda names, *_: CheckedRun(CheckedModel(Path("hf.py")), names))
    monkeypatch.setattr(evaluation, "run_tasks", run_tasks)
    monkeypatch.setattr(evaluation, "record_of", lambda *_: None)
    monkeypatch.setattr(evaluation, "complete_results", lambda *_: None)

    def evaluate(*flags, **options):
        arguments = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        line = ["eval", "org/model", "cvlue_vg", "--output-dir", str(tmp_path / "results"), *arguments, *flags]
        assert CliRunner().invoke(app, line, catch_exceptions=False).exit_code == 0
        return seen[-1]

    return evaluate


def test_a_command_s_options_go_over_the_environment_reach_threads_and_are_gone_afterwards(run, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_DATA", "samples")
    monkeypatch.setenv("CULTUREVAL_BOX_FORMAT", "xywh")
    monkeypatch.setenv("CULTUREVAL_RESUME", "0")
    monkeypatch.setenv("CULTUREVAL_MODEL_SETTINGS", '{"dtype": "float16", "batch_size": 3}')
    environment = dict(os.environ)
    options, resume, model = run(
        "--resume", task_args="box_format=qwen3_vl", columns="id=key", model_args="dtype=float32"
    )
    assert (options.root, options.columns, options.suite["box_format"]) == (samples_root(), {"id": "key"}, "qwen3_vl")
    assert (resume, model) == (True, {"model": "org/model", "dtype": "float32", "batch_size": 3})
    options, resume, model = run()
    assert (options.root, options.columns, options.suite["box_format"]) == (samples_root(), {}, "xywh")
    assert (resume, model) == (False, {"model": "org/model", "dtype": "float16", "batch_size": 3})
    with monkeypatch.context() as patch:
        patch.setenv("CULTUREVAL_RESUME", "1")
        assert run("--no-resume")[1] is False
    assert os.environ == environment and current_settings() == Settings.of_variables(environment)


def test_an_error_ends_the_override_and_blocks_nest(tmp_path):
    with pytest.raises(CulturevalError, match="--data /no/such/folder is not a folder"):
        with use_settings(current_settings().with_(cache=str(tmp_path))):
            with use_settings(current_settings().with_(form="original")):
                assert (user_cache(), current_settings().form) == (tmp_path, "original")
            assert current_settings().form == "curated"
            current_settings().with_(data_root="/no/such/folder")
    assert user_cache() != tmp_path


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("form", "auto", "FORM=auto: it should be 'curated', 'original' or 'mixed'"),
        ("resume", "maybe", "RESUME=maybe: it should be a valid boolean"),
        ("caption_bertscore_layer", "0", "CAPTION_BERTSCORE_LAYER=0: it should be greater than 0"),
        ("cache", "~no-such-user/x", "CACHE=~no-such-user/x names no user of this machine"),
        ("columns", "question", "COLUMNS=question is not NAME=THEIRS"),
        ("judge_settings", '["sk-SECRET"]', "JUDGE_SETTINGS: it should be a valid dictionary"),
        ("model_settings", '{"api_key": "sk-SECRET", "x": ' + "1" * 5000, "MODEL_SETTINGS is not JSON"),
        ("model_settings", '{"api_key": "sk-SECRET", "x": ' + "[" * 200_000, "MODEL_SETTINGS is not JSON"),
    ],
)
def test_a_bad_value_is_one_sentence_that_names_what_set_it_and_no_secret(name, text, message):
    with pytest.raises(CulturevalError, match=f"CULTUREVAL_{message}") as caught:
        Settings.of_variables({variable_of(name): text})
    assert "SECRET" not in str(caught.value) and len(str(caught.value)) < 200
    with pytest.raises(CulturevalError, match=f"^--{name.replace('_', '-')}"):
        Settings().with_(**{name: text})


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("dtype=bfloat16,batch_size=4", {"dtype": "bfloat16", "batch_size": "4"}),
        ("base_url=http://h/v1?a=b, revision=0123", {"base_url": "http://h/v1?a=b", "revision": "0123"}),
        (
            'extra_body={"a": [1, 2]},stop_tokens=["x,y"],n=2',
            {"extra_body": {"a": [1, 2]}, "stop_tokens": ["x,y"], "n": "2"},
        ),
        ("vllm_args='-tp 2 --x a,b',backend=vllm", {"vllm_args": "-tp 2 --x a,b", "backend": "vllm"}),
        ('system_prompt="a, \\"b\\"",dtype=', {"system_prompt": 'a, "b"', "dtype": ""}),
        ({"dtype": "4bit"}, {"dtype": "4bit"}),
        (None, {}),
    ],
)
def test_names_and_values_are_read_as_other_harnesses_read_them(text, values):
    assert arguments_of(text, "--model-args") == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dtype", "comes no name=value"),
        ("a=1,b", "after a comes no name=value. A value with a comma"),
        ("a=1,,b=2", "comes no name=value"),
        ("generation_parameters={temperature:SECRET}", "generation_parameters: the value is not JSON"),
        ("a=SECRET,b=2,a=1", "has a twice"),
        ("a='SECRET", "a: the value is not JSON"),
        ('a="x"SECRET', "a: a comma or the end must follow"),
        ("a=" + "[" * 100_000, "not JSON"),
        (["dtype"], "--model-args is of type list"),
    ],
)
def test_a_wrong_argument_is_one_sentence_without_its_value(text, message):
    with pytest.raises(CulturevalError, match=message) as caught:
        arguments_of(text, "--model-args")
    assert "SECRET" not in str(caught.value) and len(str(caught.value)) < 200


def test_arguments_of_models_and_tasks_that_are_wrong_are_told_together():
    wrong = ProblemList()
    evaluation_settings(wrong, "model=x", "parityy=sound", form="nope")
    assert [next(word for word in ("form", "parity", "MODEL") if word in text) for text in wrong.found] == [
        "form",
        "MODEL",
        "parity",
    ]
    settings = evaluation_settings(ProblemList(), "on_refused=unscored,dtype=auto", {"shuffle": "off"})
    assert (settings.on_refused, settings.model_settings, settings.suite) == (
        "unscored",
        {"dtype": "auto"},
        {"shuffle": "off"},
    )


def test_wrong_variables_of_settings_and_of_suites_are_told_together(monkeypatch):
    with pytest.raises(Problems) as caught:
        Settings.of_variables({"CULTUREVAL_FORM": "curatd", "CULTUREVAL_ON_REFUSED": "x", "CULTUREVAL_DATA": "/none"})
    assert len(caught.value.problems) == 3
    monkeypatch.setenv("CULTUREVAL_DIALOGUE_LAYOUT", "line")
    monkeypatch.setenv("CULTUREVAL_BOX_FORMAT", "box")
    with pytest.raises(Problems, match="DIALOGUE_LAYOUT='line' is not one of lines, one_line. Did you mean lines"):
        check_variables()


def test_values_of_code_are_checked_and_an_empty_variable_sets_nothing(tmp_path):
    assert Settings.of_variables({variable_of(name): "" for name in field_names()}) == Settings()
    with pytest.raises(CulturevalError, match="data_rot"):
        Settings().with_(data_rot="samples")
    with pytest.raises(CulturevalError, match="no 'nope'"):
        read_data_options(Settings().with_({"nope": 1}))
    with pytest.raises(CulturevalError, match="--task-args shuffle=7 is not one of on, off"):
        read_data_options(Settings().with_({"shuffle": 7}))
    (tmp_path / "a.json").touch()
    assert Settings().with_(manifest=[tmp_path / "a.json"], judges="a, b").judges == ("a", "b")


def test_an_unknown_variable_is_warned_of_once_with_the_nearest_name(monkeypatch, capsys):
    from cultureval.tasks.task_table import build_tasks_table

    for name in ("CULTUREVAL_BOX_FORMATS", "CULTUREVAL_ZZZZ", "CULTUREVAL_TEST_ONLY"):
        monkeypatch.setenv(name, "x")
    assert build_tasks_table() and build_tasks_table()  # as stock lighteval does
    first, second = capsys.readouterr().err.splitlines()
    assert "CULTUREVAL_BOX_FORMATS sets nothing. Did you mean CULTUREVAL_BOX_FORMAT" in first
    assert "CULTUREVAL_ZZZZ sets nothing. docs/commands.md" in second
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("CULTUREVAL_JUDGEE", "gpt")
    build_tasks_table()
    assert not capsys.readouterr().err


def documented(page: Path) -> list[str]:
    return [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| `CULTUREVAL_")]


def test_every_variable_is_documented_once_as_its_option_says():
    fields = list(map(variable_of, field_names()))
    rows = documented(ROOT / "docs" / "commands.md")
    assert [line.split("`")[1] for line in rows] == fields
    texts = [page.read_text(encoding="utf-8") for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]]
    named = {name for text in texts for name in re.findall(r"CULTUREVAL_[A-Z0-9_]+[A-Z0-9]", text)}
    known = {*fields, *(option.variable for option in all_options())}
    assert {option.variable for option in all_options()} <= named
    assert {name for name in named if not name.startswith("CULTUREVAL_TEST_")} <= known
