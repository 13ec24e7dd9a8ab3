"""The jail's command line: what is hidden where a bound folder holds it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cultureval.runtime.sandbox import jail
from cultureval.runtime.sandbox.jail import SandboxLimits, SandboxUnavailable, jail_command, require_user
from cultureval.runtime.sandbox.sandbox import shares_of_cpus
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.code import data_in_settings


@pytest.fixture
def bound(tmp_path, monkeypatch):
    """A folder that the jail binds twice, as a package and as the interpreter's, with data in it and links to both."""
    package = tmp_path / "site-packages/shown"
    (package / "data/org").mkdir(parents=True)
    (package / "link").symlink_to("data")
    (package / "token").touch()
    installed = tmp_path / "site-packages/shown-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: shown\nVersion: 1\n")
    (installed / "RECORD").write_text("shown/__init__.py,,\nshown-1.dist-info/METADATA,,\n../bin/shown,,\n")
    (tmp_path / "outside").symlink_to("site-packages/shown/data")
    (tmp_path / "alias").symlink_to("site-packages/shown")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site-packages")])
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "alias"))
    monkeypatch.setenv("CULTUREVAL_CODE_PACKAGES", "numpy, shown")
    return package


def masked(bound: Path, option: str, *source: str) -> list[set[str]]:
    """For each name by which the jail binds the folder, the paths in it that the option is given for."""
    command = jail_command(SandboxLimits())
    start = [option, *source]
    ends = {command[i + len(start)] for i in range(len(command) - len(start)) if command[i : i + len(start)] == start}
    triples = zip(command, command[1:], command[2:], strict=False)
    targets = [target for option, place, target in triples if (option, place) == ("--ro-bind", str(bound))]
    assert len(targets) == 2
    return [{end.removeprefix(f"{target}/") for end in ends if end.startswith(f"{target}/")} for target in targets]


def hidden(bound: Path) -> set[str]:
    """Folders that are hidden, and cannot be written to, by both names."""
    shown, closed = masked(bound, "--tmpfs"), masked(bound, "--remount-ro")
    assert shown == closed
    return set.intersection(*shown)


@pytest.mark.parametrize(
    "root",
    ["site-packages/shown/data", "site-packages/shown/link", "outside", "alias/link", "alias/../shown/data"],
)
@pytest.mark.parametrize("way", ["variable", "command"])
@pytest.mark.parametrize("absolute", [True, False])
def test_a_data_root_in_a_bound_folder_is_hidden_by_every_path(bound, monkeypatch, root, way, absolute):
    given = str(Path(root).absolute()) if absolute else root
    if way == "variable":
        monkeypatch.setenv("CULTUREVAL_DATA", given)
    with data_in_settings(given if way == "command" else None):
        assert "data" in hidden(bound)
    with use_settings(current_settings().with_(data_root="")):
        assert "data" not in hidden(bound)


@pytest.mark.parametrize(
    "variable", ["HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "XDG_CACHE_HOME", "CULTUREVAL_CACHE", "HOME"]
)
def test_other_folders_of_the_user_are_hidden_by_links_too(bound, monkeypatch, variable):
    monkeypatch.setenv(variable, "outside")
    assert "data" in hidden(bound)


def test_a_token_is_hidden_and_the_file_of_all_tokens_beside_it(bound, monkeypatch):
    (bound / "stored_tokens").touch()
    monkeypatch.setenv("HF_TOKEN_PATH", "alias/token")
    for paths in masked(bound, "--ro-bind", "/dev/null"):
        assert paths == {"token", "stored_tokens"}


def test_only_the_named_packages_are_shown_and_must_be_installed(bound, monkeypatch):
    command = jail_command(SandboxLimits())
    shown = {word.removeprefix("/sandbox/packages/") for word in command if word.startswith("/sandbox/packages/")}
    assert {"numpy", "numpy.libs", "shown", "shown-1.dist-info"} <= {word.partition("/")[0] for word in shown}
    assert not {word for word in shown if word.startswith(("sympy", "torch", "evalplus"))}
    monkeypatch.setenv("CULTUREVAL_CODE_PACKAGES", "numpy,unheard")
    with pytest.raises(SandboxUnavailable, match=r"CULTUREVAL_CODE_PACKAGES.*unheard is not installed"):
        jail_command(SandboxLimits())


@pytest.mark.parametrize(
    ("workers", "shares"),
    [
        (1, [[1, 3, 5, 7]]),
        (2, [[1, 5], [3, 7]]),
        (3, [[1, 7], [3], [5]]),
        (4, [[1], [3], [5], [7]]),
        (6, [[1], [3], [5], [7], [1], [3]]),
    ],
)
def test_jails_share_no_cpu_as_long_as_there_are_enough(monkeypatch, workers, shares):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {7, 5, 3, 1})
    assert shares_of_cpus(workers) == shares


def test_a_jail_runs_in_a_control_group_where_systemd_gives_one(tmp_path, monkeypatch):
    """A stand-in for systemd-run, since few machines of tests have such groups: its command line, and its refusal."""
    program = tmp_path / "systemd-run"
    program.write_text("#!/bin/sh\nexit ${REFUSED:-0}\n")
    program.chmod(0o755)
    (tmp_path / "controllers").write_text("cpu memory pids\n")
    monkeypatch.setattr(jail, "_CONTROLLERS", tmp_path / "controllers")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    find = jail.control_group.__wrapped__
    command = find(SandboxLimits())
    assert command[0] == str(program) and command[-1] == "--" and "--scope" in command
    assert {"MemoryMax=4480M", "TasksMax=72", "MemorySwapMax=0", "CPUWeight=100"} <= set(command)
    monkeypatch.setenv("REFUSED", "1")
    assert find(SandboxLimits()) == ()
    (tmp_path / "controllers").write_text("cpu pids\n")
    monkeypatch.delenv("REFUSED")
    assert find(SandboxLimits()) == ()


@pytest.mark.parametrize(
    ("uid_map", "mapped"),
    [
        ("         0          0 4294967295\n", True),
        ("0 1000 1\n", False),
        ("0 1000 1\n1 100000 65535\n", True),
        ("0 1000 1\n1 100000 65533\n", False),
        ("0 0 1\n65534 100000 1\n", True),
    ],
)
def test_root_that_cannot_become_nobody_is_told_so_and_bubblewrap_is_not_blamed(uid_map, mapped):
    if mapped:
        require_user(65534, uid_map)
        return
    with pytest.raises(SandboxUnavailable, match="maps too few.*uid_map.*map-auto") as error:
        require_user(65534, uid_map)
    assert "bubblewrap" not in str(error.value)


def test_a_shell_in_which_only_root_is_mapped_gets_that_advice():
    code = "from cultureval.runtime.sandbox.sandbox import Sandbox; Sandbox().start()"
    command = ["unshare", "-Ur", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare:" in done.stderr:
        pytest.skip("no user namespaces here")
    assert "SandboxUnavailable: generated code is never run as root" in done.stderr
