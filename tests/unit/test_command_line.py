"""What every command has: help by both names, with an example; the version; completion in the shell."""

import errno
import os
import re
from importlib.metadata import version

import pytest
import typer
from typer.testing import CliRunner

import cultureval
from cultureval.scripts import main
from cultureval.scripts.main import app


def commands(command, path=()):
    """The words of each command, groups among them."""
    yield path
    for name, sub_command in sorted(getattr(command, "commands", {}).items()):
        yield from commands(sub_command, (*path, name))


@pytest.mark.parametrize("path", commands(typer.main.get_command(app)), ids=" ".join)
def test_help_has_two_names_and_an_example(path):
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
        "agreement jeem {}/lost.csv",
        "agreement alqasida {}/lost.csv",
        "score cvlue-vqa --gold {0}/lost.json --pred {0}/lost.json --output-dir {0}/out",
    ],
)
def test_a_missing_file_is_said_not_to_exist(command, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["cultureval", *command.format(tmp_path).split()])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    assert re.search(r"lost\.\w+ does not exist\.$", capsys.readouterr().err.strip())


@pytest.mark.parametrize("line, expected", [("cultureval agr", "agreement"), ("cultureval eval --bad", "--bad-rows")])
def test_a_shell_can_complete_commands_and_options(line, expected):
    environment = {"_CULTUREVAL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    assert CliRunner().invoke(app, prog_name="cultureval", env=environment).stdout.split() == [expected]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
@pytest.mark.parametrize("place", [None, "/out/results.json"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_full_disk_is_one_sentence(monkeypatch, capsys, tmp_path, number, place, wrapped):
    def full():
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
    assert os.strerror(number) in line and (place or str(tmp_path)) in line
