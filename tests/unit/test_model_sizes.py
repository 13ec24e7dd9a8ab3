"""Parameters and families of models, from their names."""

import pytest

from cultureval.reports.model_sizes import family, model_sizes
from cultureval.runtime.errors import CulturevalError


def test_sizes_and_families():
    expected = {"SmolVLM-256M-Instruct": 0.256, "Qwen2.5-14B-Instruct-1M": 14, "Qwen3-VL-32B-Instruct": 32}
    expected |= {"gemma-3-4b-it": 4, "x-1.5B": 1.5, "FanarOryx-v1": 9, "Qwen3-30B-A3B": 30}
    models = {*expected, "B52"}
    assert model_sizes(models, ["FanarOryx-v1=9"]) == expected
    assert family("SmolVLM-256M-Instruct") == family("SmolVLM-2.2B-Instruct") == "SmolVLM-Instruct"
    for wrong in ("AIN=7", "B52=", "B52=0", "B52", "B52=seven"):
        with pytest.raises(CulturevalError, match="MODEL=BILLIONS"):
            model_sizes(models, [wrong])
