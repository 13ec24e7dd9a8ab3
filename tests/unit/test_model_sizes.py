"""Parameters and families of models, from their names."""

from cultureval.reports.model_sizes import billions_of, family


def test_sizes_and_families():
    expected = {"SmolVLM-256M-Instruct": 0.256, "Qwen2.5-14B-Instruct-1M": 14, "Qwen3-VL-32B-Instruct": 32}
    expected |= {"gemma-3-4b-it": 4, "x-1.5B": 1.5, "FanarOryx-v1": None, "Qwen3-30B-A3B": 30, "B52": None}
    assert {name: billions_of(name) for name in expected} == expected
    assert family("SmolVLM-256M-Instruct") == family("SmolVLM-2.2B-Instruct") == "SmolVLM-Instruct"
