"""Settings: the environment is read in one place, a command's options go over it and leave nothing behind."""

import ast
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from cultureval.reports import evaluation
from cultureval.runs.record import Run
from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.errors import CulturevalError, Problems
from cultureval.runtime.model_settings import CheckedModel, read_model_settings
from cultureval.runtime.settings import Option, Settings, current_settings, use_settings
from cultureval.scripts import evaluate as command
from cultureval.scripts.main import app
from cultureval.tasks.catalogue import all_suites
from cultureval.tasks.options import all_options, check_variables, read_data_options
from cultureval.tasks.preflight import Plan

ROOT = Path(__file__).parents[2]
ROOMS = ("audit", "tasks", "prompts", "metrics", "judge_prompts", "models", "runtime", "scripts", "samples", "reports")


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
    monkeypatch.setattr(command, "go_offline_if_unreachable", lambda: None)

    def run_tasks(model, model_file, tasks, limit, output_dir, saving):
        with ThreadPoolExecutor(1) as pool:
            options = pool.submit(read_data_options).result()
        seen.append((options, current_settings().resume, read_model_settings(model)))
        tracker = SimpleNamespace(save_summary=lambda _: tmp_path, failed_uploads=[], results_file=tmp_path)
        return SimpleNamespace(tracker=tracker)

    monkeypatch.setattr(evaluation, "preflight", lambda names, *_: Plan(CheckedModel(Path("hf.py")), names))
    monkeypatch.setattr(evaluation, "run_tasks", run_tasks)
    monkeypatch.setattr(evaluation, "record_of", lambda *_: None)
    monkeypatch.setattr(evaluation, "save_run", lambda *_: None)
    monkeypatch.setattr(evaluation, "read_run", lambda file: Run(file, "org/model", "", {}))

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
    options, resume, model = run("--resume", box_format="qwen3_vl", bad_rows="skip", dtype="float32")
    assert (options.root, options.bad_rows, options.suite["box_format"]) == (samples_root(), "skip", "qwen3_vl")
    assert (resume, model) == (True, {"model": "org/model", "dtype": "float32", "batch_size": 3})
    options, resume, model = run()
    assert (options.root, options.bad_rows, options.suite["box_format"]) == (samples_root(), "few", "xywh")
    assert (resume, model) == (False, {"model": "org/model", "dtype": "float16", "batch_size": 3})
    with monkeypatch.context() as patch:
        patch.setenv("CULTUREVAL_RESUME", "1")
        assert run("--no-resume")[1] is False
    assert os.environ == environment and not current_settings().overrides


def test_an_error_ends_the_override_and_blocks_nest(tmp_path):
    with pytest.raises(CulturevalError, match="not a folder"):
        with use_settings(current_settings().with_(cache=str(tmp_path), data_root="/no/such/folder")):
            with use_settings(current_settings().with_(form="original")):
                assert (user_cache(), current_settings().form) == (tmp_path, "original")
            assert current_settings().form == "auto"
            read_data_options()
    assert user_cache() != tmp_path


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("CULTUREVAL_BAD_ROWS", "ignore", "CULTUREVAL_BAD_ROWS='ignore' is not one of few, stop, skip.$"),
        ("CULTUREVAL_FINGERPRINT", "ful", r"not one of sampled, full\. Did you mean full\?"),
        ("CULTUREVAL_RESUME", "maybe", "CULTUREVAL_RESUME='maybe' is neither 1 .* nor 0 .*"),
        ("CULTUREVAL_JUDGE_SETTINGS", '["sk-1"]', "CULTUREVAL_JUDGE_SETTINGS must be a JSON object"),
        ("CULTUREVAL_MODEL_SETTINGS", "[1]", "CULTUREVAL_MODEL_SETTINGS"),
        ("CULTUREVAL_MODEL_SETTINGS", "{bad", "CULTUREVAL_MODEL_SETTINGS"),
        ("CULTUREVAL_CAPTION_BERTSCORE_LAYER", "0", "CULTUREVAL_CAPTION_BERTSCORE_LAYER='0' is not the number"),
        ("CULTUREVAL_DIALOGUE_LAYOUT", "wide", "CULTUREVAL_DIALOGUE_LAYOUT='wide' is not one of lines, one_line."),
    ],
)
def test_a_bad_value_is_one_sentence_and_said_where_it_is_needed_only(variable, text, message):
    settings = Settings({variable: text})
    (option,) = [option for option in [*Settings.options(), *all_options()] if option.variable == variable]
    with pytest.raises(CulturevalError, match=message) as caught:
        option.read(settings)
    assert "sk-1" not in str(caught.value)
    others = [other.read(settings) for other in [*Settings.options(), *all_options()] if other is not option]
    assert len(others) > 20


@pytest.mark.parametrize(
    ("name", "text", "by_variable", "by_option"),
    [
        ("data_root", "/none", "CULTUREVAL_DATA='/none' is not a folder", "--data '/none' is not a folder"),
        ("bad_rows", "no", "CULTUREVAL_BAD_ROWS='no' is not one of", "--bad-rows 'no' is not one of"),
        ("custom_suites", "a,b", "CULTUREVAL_CUSTOM_SUITES a: it cannot", "--custom-suites a: it cannot"),
    ],
)
def test_an_error_names_what_set_the_value(name, text, by_variable, by_option):
    (option,) = [option for option in Settings.options() if option.name == name]
    as_variable, as_option = Settings({option.variable: text}), Settings({}).with_(**{name: text})
    for settings, told in ((as_variable, by_variable), (as_option, by_option)):
        with pytest.raises(CulturevalError) as caught:
            read_data_options(settings)
        assert str(caught.value).startswith(told)
    both = as_variable.with_(**{name: text})
    with pytest.raises(CulturevalError, match=by_option):
        read_data_options(both)


def test_an_empty_variable_sets_nothing_and_a_name_in_code_is_checked():
    empty = Settings({option.variable: "" for option in Settings.options()})
    assert all(option.read(empty) == option.default for option in Settings.options())
    assert all(getattr(Settings, option.name) is option for option in Settings.options())
    with pytest.raises(TypeError, match="data_rot"):
        current_settings().with_(data_rot="samples")


@pytest.mark.parametrize(
    ("suite", "given", "message"),
    [
        ({"nope": 1}, {}, "No setting is called nope"),
        ({"shuffle": 7}, {}, "shuffle has a value of type int; it must be one of on, off"),
        ({}, {"bad_rows": 7}, "bad_rows has a value of type int; it must be one of few, stop, skip"),
    ],
)
def test_values_that_code_gives_are_checked_too(suite, given, message):
    with pytest.raises(CulturevalError, match=message):
        read_data_options(current_settings().with_(suite, **given))
    with pytest.raises(CulturevalError, match="No setting is called nope"):
        current_settings().with_(nope=1)
    with pytest.raises(CulturevalError, match="model_settings has a value of type list; it must be of type dict"):
        _ = current_settings().with_(model_settings=["sk-1"]).model_settings


@pytest.mark.parametrize("value", ["1" * 5000, "[" * 200_000], ids=["long number", "deep nesting"])
def test_json_settings_that_cannot_be_parsed_are_not_shown(value):
    with pytest.raises(CulturevalError, match="CULTUREVAL_MODEL_SETTINGS holds a number that is too long") as caught:
        _ = Settings({"CULTUREVAL_MODEL_SETTINGS": f'{{"api_key": "sk-SECRET", "x": {value}'}).model_settings
    assert "sk-SECRET" not in str(caught.value) and len(str(caught.value)) < 200


def test_an_unknown_variable_is_warned_of_once_with_the_nearest_name():
    variables = {"CULTUREVAL_BOX_FORMATS": "xyxy", "CULTUREVAL_CACHED": "/x", "CULTUREVAL_TEST_ONLY": "1"}
    variables |= {"CULTUREVAL_BOX_FORMAT": "xyxy", "CULTUREVAL_ZZZZ": ""}
    command = [sys.executable, "-m", "cultureval.scripts.main", "tasks", "--suite", "jeem"]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=True, cwd=ROOT)
    assert [line.partition("variable ")[2] for line in done.stderr.splitlines()] == [
        "CULTUREVAL_BOX_FORMATS sets nothing; did you mean CULTUREVAL_BOX_FORMAT?",
        "CULTUREVAL_CACHED sets nothing; did you mean CULTUREVAL_CACHE?",
        "CULTUREVAL_ZZZZ sets nothing; docs/settings.md and the pages of the suites list those there are.",
    ]


def test_wrong_variables_are_told_together():
    settings = Settings({"CULTUREVAL_BAD_ROWS": "ignore", "CULTUREVAL_BOX_FORMAT": "box"})
    with use_settings(settings), pytest.raises(Problems) as caught:
        check_variables()
    assert [problem.partition("=")[0] for problem in caught.value.problems] == [
        "CULTUREVAL_BAD_ROWS",
        "CULTUREVAL_BOX_FORMAT",
    ]


def test_wrong_variables_of_a_run_are_told_with_its_other_problems(tmp_path, monkeypatch):
    for name, value in {"CULTUREVAL_FORM": "curatd", "CULTUREVAL_ON_REFUSED": "x", "HF_HUB_OFFLINE": "1"}.items():
        monkeypatch.setenv(name, value)
    command = ["eval", str(tmp_path / "none"), "qimma_aratrus", "--output-dir", str(tmp_path)]
    with pytest.raises(Problems) as caught:
        app(command, standalone_mode=False)
    wanted = ("CULTUREVAL_FORM='curatd'", "CULTUREVAL_ON_REFUSED='x'", "Did you mean qimma_aratrust", "no model folder")
    for text in wanted:
        assert sum(text in problem for problem in caught.value.problems) == 1, caught.value.problems
    with pytest.raises(Problems, match="CULTUREVAL_FORM"):  # a command without such a list
        app(["tasks"], standalone_mode=False)


def test_stock_lighteval_warns_as_well_when_it_loads_our_tasks(monkeypatch, capsys):
    from cultureval.tasks.task_table import build_tasks_table

    monkeypatch.setenv("CULTUREVAL_JUGDE", "gpt")
    assert build_tasks_table() and build_tasks_table()
    assert capsys.readouterr().err.count("CULTUREVAL_JUGDE sets nothing; did you mean CULTUREVAL_JUDGE?") == 1
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("CULTUREVAL_JUDGEE", "gpt")
    build_tasks_table()
    assert not capsys.readouterr().err


def documented(page: Path) -> list[str]:
    return [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| `CULTUREVAL_")]


def row(option: Option) -> str:
    return f"| `{option.variable}` | {option.help} |"


def test_every_variable_is_documented_once_as_its_option_says():
    pages = {"settings.md": list(Settings.options())}
    pages |= {f"{name.removesuffix('_dev')}.md": suite.part("options") for name, suite in all_suites().items()}
    for page in (ROOT / "docs").glob("*.md"):
        assert documented(page) == [row(option) for option in pages.get(page.name, ())], page
    known = {option.variable for option in [*Settings.options(), *all_options()]}
    texts = [page.read_text(encoding="utf-8") for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]]
    named = {name for text in texts for name in re.findall(r"CULTUREVAL_[A-Z0-9_]+[A-Z0-9]", text)}
    assert {name for name in named if not name.startswith("CULTUREVAL_TEST_")} <= known


def test_a_home_of_nobody_is_an_error_that_says_so():
    with pytest.raises(CulturevalError, match="'~no-such-user/m' names no user of this machine"):
        read_model_settings("~no-such-user/m")
    for variable in ("CULTUREVAL_CACHE", "CULTUREVAL_DATA", "CULTUREVAL_SOURCES"):
        settings = Settings({variable: "~no-such-user/x"})
        (option,) = (one for one in Settings.options() if one.variable == variable)
        with pytest.raises(CulturevalError, match=f"{variable}='~no-such-user/x' names no user"):
            option.read(settings)
