"""The fields of the record are documented where they are declared, and the site's list is made from that."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))

from record_fields import PARTS, record_fields


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_field_is_described(part):
    told = part.__doc__ or ""
    names = [name for name in part.model_fields if f"`{name}`" not in told and f" {name}: " not in told]
    assert not names


def test_the_list_has_a_row_a_described_field():
    text = record_fields()
    assert "| `schema` | Version of the section" in text and "| `rows_hash`" not in text.split("### TaskRecord")[0]
    assert all(f"### {part.__name__}" in text for part in PARTS)
