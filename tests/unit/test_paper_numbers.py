"""The paper's model of the same name as a run's."""

import pytest

from cultureval.runs.table import published_model, published_rows

LISTED = ("GPT-4o", "Qwen3-VL-32B", "command-r", "c4ai-command-r-plus", "Llama-3.1-8B-Instruct", "Llama-3.1-8B")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt-4o", "GPT-4o"),
        ("openai/gpt-4o", "GPT-4o"),
        ("gpt-4o-mini", None),
        ("Qwen/Qwen3-VL-32B", "Qwen3-VL-32B"),
        ("Qwen/Qwen3-VL-3.2B-x", None),
        ("models/C4AI_command-r+", "c4ai-command-r-plus"),
        ("meta-llama/Llama-3.1-8B", "Llama-3.1-8B"),
        ("meta-llama/Meta-Llama-3.1-8B", "Llama-3.1-8B"),
        ("./Llama-3.1-8B-Instruct/", "Llama-3.1-8B-Instruct"),
        ("/cache/models--meta-llama--Llama-3.1-8B-Instruct/snapshots/0123abcd", "Llama-3.1-8B-Instruct"),
        ("my/llama_3.1_8b-it", "Llama-3.1-8B-Instruct"),
        ("Llama-3-18B", None),
        ("Llama-31-8B", None),
        ("Llama-3.18B", None),
        ("Llama-3.1-8B-Instruct-AWQ", None),
        ("", None),
    ],
)
def test_names_are_compared_without_organisation_case_and_punctuation(name, expected):
    assert published_model(name, LISTED) == expected


def test_a_table_names_its_source_in_comments(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("# arXiv 1, Table 2\nmodel,score\nGPT-4o,1.5\n", encoding="utf-8")
    assert published_rows(file) == [{"model": "GPT-4o", "score": "1.5"}]
