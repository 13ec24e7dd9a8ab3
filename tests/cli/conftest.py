"""Whole commands: the fixtures of `command_fixtures`."""

from command_fixtures import *  # noqa: F403
