"""Metrics are declared once, with their roles; `test_task_table.py` holds that tables and LightEval's metrics agree."""

import pytest

from cultureval.metrics.declared import declare
from cultureval.metrics.m2cqa.names import STATEMENTS
from cultureval.metrics.qimma.names import CODE


def test_a_declaration_has_roles_and_refuses_what_is_not_declared():
    metrics = declare("acc", "n", "floor", counts=["n"], bounds=["floor"], lower=["n"])
    assert [row.role for row in metrics.values()] == ["headline", "count", "bound"]
    assert [row.higher_is_better for row in metrics.values()] == [True, False, True]
    for arguments in ({"others": ["acc"]}, {"counts": ["m"]}):
        with pytest.raises(ValueError, match="names must be different"):
            declare("acc", *arguments.pop("others", []), **arguments)


def test_declared_ways_of_better():
    assert [name for name, row in CODE.items() if not row.higher_is_better] == ["not_judged"]
    profiles = ("", "_lenient", "_organisers")
    lower = {"cfhr_valid_only"} | {f"{name}{profile}" for name in ("cfhr", "invalid_rate") for profile in profiles}
    assert {name for name, row in STATEMENTS.items() if not row.higher_is_better} == lower
