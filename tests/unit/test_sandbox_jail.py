"""The jail's command line: what is hidden where a bound folder holds it."""

from pathlib import Path

import pytest

from cultureval.runtime.sandbox import jail
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.code.options import data_in_settings


@pytest.fixture
def bound(tmp_path, monkeypatch):
    """A folder that the jail binds by two names, with a data root in it and links to both."""
    (tmp_path / "bound/data/org").mkdir(parents=True)
    (tmp_path / "bound/link").symlink_to("data")
    (tmp_path / "outside").symlink_to("bound/data")
    (tmp_path / "alias").symlink_to("bound")
    monkeypatch.chdir(tmp_path)
    sources = [(str(tmp_path / name), f"/{name}") for name in ("bound", "alias")]
    monkeypatch.setattr(jail, "_read_only_files", lambda: sources)
    return tmp_path


def hidden() -> list[str]:
    command = jail.jail_command(jail.SandboxLimits(), 3)
    return [target for option, target in zip(command, command[1:], strict=False) if option == "--tmpfs"]


@pytest.mark.parametrize("root", ["bound/data", "bound/link", "outside", "alias/link", "bound/../bound/data"])
@pytest.mark.parametrize("way", ["variable", "command"])
@pytest.mark.parametrize("absolute", [True, False])
def test_a_data_root_in_a_bound_folder_is_hidden_by_every_path(bound, monkeypatch, root, way, absolute):
    given = str(Path(root).absolute()) if absolute else root
    if way == "variable":
        monkeypatch.setenv("CULTUREVAL_DATA", given)
    with data_in_settings(given if way == "command" else None) as found:
        assert found == given
        assert {"/bound/data", "/alias/data"} <= {*hidden()}
    with use_settings(current_settings().with_(data_root="")):
        assert "/bound/data" not in hidden()


@pytest.mark.parametrize("variable", ["HF_HOME", "CULTUREVAL_CACHE", "HOME"])
def test_other_folders_of_the_user_are_hidden_by_links_too(bound, monkeypatch, variable):
    monkeypatch.setenv(variable, "outside")
    assert {"/bound/data", "/alias/data"} <= {*hidden()}
