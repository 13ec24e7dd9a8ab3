"""What every command has: help by both names, with an example; the version; completion in the shell."""

import errno
import os
import re
import signal
import subprocess
import sys
from importlib.metadata import version

import pytest
import typer
from typer.testing import CliRunner

import cultureval
from benchmarks.__main__ import app as benchmarks
from cultureval.__main__ import STOPPED
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts import main
from cultureval.scripts.main import app


def commands(command, path=()):
    """The words of each command, groups among them."""
    yield path
    for name, sub_command in sorted(getattr(command, "commands", {}).items()):
        yield from commands(sub_command, (*path, name))


def parameters(command, path=()):
    """(words of the command, parameter) of each command, those of suites among them."""
    if hasattr(command, "list_commands"):
        context = typer.Context(command)
        for name in command.list_commands(context):
            yield from parameters(command.get_command(context, name), (*path, name))
    else:
        yield from ((" ".join(path), parameter) for parameter in command.params)


def test_each_option_has_help_one_name_for_its_meaning_and_one_meaning_for_its_name():
    found = [*parameters(typer.main.get_command(app)), *parameters(typer.main.get_command(benchmarks), ("bench",))]
    assert {"eval", "fetch", "bench retrieval", "audit curate", "judge"} <= {path for path, _ in found}
    assert [(path, one.name) for path, one in found if not one.help] == []
    synonyms = {"out", "to", "output_folder", "output_path", "max_samples", "max_rows", "data_dir", "data_root", "root"}
    synonyms |= {"gpu", "suites", "custom_suite", "plugin", "iterations", "bootstraps", "precision", "batch"}
    assert [(path, one.name) for path, one in found if one.name in synonyms] == []
    kinds = {}
    for path, one in found:
        if one.param_type_name == "option":
            kind = (one.is_flag, one.multiple, one.bare_type() in (int, float))
            kinds.setdefault(one.opts[0], {}).setdefault(kind, []).append(path)
    # `--model` of `audit code` is a name, that of `bench scoring` a folder.
    assert {name: kind for name, kind in kinds.items() if len(kind) > 1 and name != "--model"} == {}
    folders = [one.opts for _, one in found if one.help.startswith(("Output folder", "Folder to", "Folder in which"))]
    folders = [names for names in folders if names[0].startswith("--")]
    assert len(folders) > 5 and all(names[0] == "--output-dir" for names in folders)


@pytest.mark.parametrize(
    "line",
    [
        "--custom-suites a.py tasks x --custom-suites=b.py",
        "tasks --custom-suites a.py --custom-suites b.py x",
        "--custom-suites=a.py --custom-suites=b.py tasks x",
    ],
)
def test_custom_suites_stand_at_any_place_of_the_command_line(line):
    assert main.without_custom_suites(line.split()) == (["tasks", "x"], ["a.py", "b.py"])


def test_custom_suites_need_a_value_and_end_where_options_end():
    assert main.without_custom_suites(["eval", "--", "--custom-suites"]) == (["eval", "--", "--custom-suites"], [])
    for line in (["--custom-suites"], ["--custom-suites="], ["--custom-suites", "--json"]):
        with pytest.raises(CulturevalError, match="--custom-suites needs"):
            main.without_custom_suites(line)


def test_help_of_eval_fits_a_screen():
    shown = CliRunner().invoke(app, ["eval", "--help"], env={"COLUMNS": "80"}).stdout
    assert len(shown.splitlines()) < 40


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted({*commands(typer.main.get_command(app))} - {("lighteval",)}), ids=" ".join)
def test_help_has_two_names_and_an_example(path):
    """LightEval's own is asked for in another process: its import shuts all handlers of logs, so pytest's streams."""
    short, long = (CliRunner().invoke(app, [*path, option], prog_name="cultureval") for option in ("-h", "--help"))
    assert short.exit_code == long.exit_code == 0
    assert short.stdout == long.stdout
    assert "Usage: cultureval" in long.stdout and "Example:" in long.stdout


def test_the_version_is_that_of_the_installed_package():
    assert CliRunner().invoke(app, ["--version"]).stdout == f"cultureval {version('cultureval')}\n"
    assert cultureval.__version__ == version("cultureval")
    assert re.match(r"\d+\.\d+", cultureval.__version__)
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = cultureval.no_such_name


@pytest.mark.parametrize(
    "command",
    [
        "judge --ratings jeem={}/lost.csv",
        "judge --ratings alqasida={}/lost.csv",
        "score cvlue-vqa --gold {0}/lost.json --pred {0}/lost.json --output-dir {0}/out",
    ],
)
def test_a_missing_file_is_said_not_to_exist(command, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["cultureval", *command.format(tmp_path).split()])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    assert re.search(r"lost\.\w+ does not exist\.$", capsys.readouterr().err.strip())


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("eval model qimma --max-samples 2", r"--max-samples\. Write --limit\."),
        ("eval model qimma --max_sample=2", r"--max_sample\. Write --limit\."),
        ("eval model qimma --output_path out", r"--output_path\. Write --output-dir\."),
        ("eval --model hf --tasks qimma", r"Write cultureval eval MODEL TASKS\."),
        ("eval model qimma --save-details", r"Write --log-samples\."),
        ("eval model qimma --apply_chat_template", r"Write --model-args chat_template=on\."),
        ("eval model qimma --include_path x.py", r"Write --custom-suites\."),
        ("eval model qimma --fewshot_as_multiturn", r"Leave it out\."),
        ("eval model qimma --dtype bfloat16", r"No such option: --dtype\. Write --model-args dtype=\.\.\."),
        ("eval model qimma --batch_size 4", r"Write --model-args batch_size=\.\.\."),
        ("eval model qimma --box-format xyxy", r"Write --task-args box_format=\.\.\."),
        (
            "eval qimma_aratrust",
            r"qimma_aratrust names tasks; MODEL comes first: `cultureval eval MODEL qimma_aratrust`\.",
        ),
    ],
)
def test_a_name_that_nearly_is_one_or_is_another_harness_is_told(monkeypatch, capsys, command, meant):
    monkeypatch.setattr("sys.argv", ["cultureval", *command.split()])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2 and re.search(f"{meant}$", capsys.readouterr().err.strip())


@pytest.mark.parametrize("line, expected", [("cultureval lead", "leaderboard"), ("cultureval eval --dry", "--dry-run")])
def test_a_shell_can_complete_commands_and_options(line, expected):
    environment = {"_CULTUREVAL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    assert CliRunner().invoke(app, prog_name="cultureval", env=environment).stdout.split() == [expected]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
@pytest.mark.parametrize("place", [None, "/out/results.json"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_full_disk_is_one_sentence(monkeypatch, capsys, tmp_path, number, place, wrapped):
    def full(**options):
        try:
            raise OSError(number, os.strerror(number), place)
        except OSError as error:
            if wrapped:
                raise RuntimeError("An error occurred while generating the dataset") from error
            raise

    monkeypatch.setattr(main, "app", full)
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path))
    with pytest.raises(SystemExit) as exit_:
        main.main()
    (line,) = capsys.readouterr().err.splitlines()
    assert exit_.value.code == 2
    assert os.strerror(number) in line and (place or str(tmp_path)) in line and "CULTUREVAL_CACHE" in line


@pytest.mark.parametrize("module", ["typer", "stopping_suite"])  # loaded by the command line, and by its first command
def test_ctrl_c_while_modules_load_is_one_sentence(tmp_path, module):
    stop = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nassert False\n"
    (tmp_path / f"{module}.py").write_text(stop)
    command = [sys.executable, "-m", "cultureval", "tasks", "--custom-suites", "stopping_suite"]
    variables = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.stderr.startswith(STOPPED.rstrip())
    assert (done.returncode, done.stdout) == (128 + signal.SIGINT, "")
