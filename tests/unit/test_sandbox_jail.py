"""What the jail shows, and what it refuses to show."""

import importlib.metadata
import os
from pathlib import Path

import pytest

from cultureval.runtime.sandbox.jail import Jail, SandboxUnavailable, check_jail, packages_and_versions, plan_jail


def shown(plan):
    """By place in the jail, the folders and files of this machine that it shows."""
    words = plan.command
    return {words[at + 2]: words[at + 1] for at, word in enumerate(words) if word in ("--ro-bind", "--dev-bind")}


def test_it_shows_libraries_the_interpreter_the_packages_and_two_files_of_ours():
    places = shown(plan_jail())
    ours = {place for place in places if place.startswith("/sandbox/code")}
    assert {Path(place).name for place in ours} == {"codec.py", "worker.py"}
    packages = {Path(place).name for place in places if place.startswith("/sandbox/packages")}
    assert {"numpy", "sympy", "mpmath"} <= packages and not packages & {"cultureval", "evalplus", "torch"}
    for private in (str(Path.home()), os.getcwd(), "/etc", "/proc", "/tmp", "/var"):
        assert private not in places.values()
    assert "--unshare-net" in plan_jail().command and "--clearenv" in plan_jail().command


@pytest.mark.parametrize("variable", ["CULTUREVAL_DATA", "CULTUREVAL_CACHE", "HF_HUB_CACHE", "HF_TOKEN_PATH", "HOME"])
def test_data_among_the_libraries_stop_it(monkeypatch, tmp_path, variable):
    library = Path(importlib.metadata.distribution("numpy").locate_file("numpy")).resolve()
    (tmp_path / "link").symlink_to(library)
    monkeypatch.setenv(variable, str(tmp_path / "link" / "linalg"))
    with pytest.raises(SandboxUnavailable, match="numpy/linalg"):
        plan_jail()


def test_what_it_needs_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("CULTUREVAL_CODE_PACKAGES", "numpy,unheard-of")
    with pytest.raises(SandboxUnavailable, match="pip install unheard-of"):
        plan_jail()
    assert packages_and_versions() == f"numpy {importlib.metadata.version('numpy')}"
    monkeypatch.delenv("CULTUREVAL_CODE_PACKAGES")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="apt-get install bubblewrap"):
        plan_jail()
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho no namespaces >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    with pytest.raises(SandboxUnavailable, match=r"no namespaces.*user\.max_user_namespaces"):
        check_jail()


def test_a_jail_leaves_no_descriptor_and_no_process():
    plan = check_jail()
    before = set(os.listdir("/proc/self/fd"))
    with Jail(plan) as jail:
        jail.start({"code": "while True: pass", "entry_point": "f", "inputs": [[]], "form": ""} | LIMITS)
    assert set(os.listdir("/proc/self/fd")) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(jail._process.pid, os.WNOHANG)


LIMITS = {"limits": [60.0], "all": 60.0, "cpu": 60, "wall": 60.0}
