"""All tests of this folder are slow: `make test-all` runs them, `make test` does not."""

from pathlib import Path

import pytest
from command_fixtures import *  # noqa: F403

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.slow)
