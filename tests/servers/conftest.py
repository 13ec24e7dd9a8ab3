"""Fixtures of the tests of servers: those of whole commands."""

from command_fixtures import *  # noqa: F403
