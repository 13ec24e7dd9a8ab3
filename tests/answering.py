"""Answers docs with a model and writes the responses down: answering.py JSON."""

import importlib
import json
import sys
from pathlib import Path

import torch
from lighteval.models.custom.custom_model import CustomModelConfig
from lighteval.tasks.requests import Doc


def main(module: str, name: str, model: str, method: str, docs: list, result: str) -> None:
    """Loads the class `name` of a module and calls its method with the docs."""
    torch.set_num_threads(1)
    config = CustomModelConfig(model_name=model, model_definition_file_path="x")
    loaded = getattr(importlib.import_module(module), name)(config)
    responses = getattr(loaded, method)([Doc(choices=choices, gold_index=0, **one) for one, choices in docs])
    rows = [[response.text, response.logprobs, response.argmax_logits_eq_gold] for response in responses]
    Path(result).write_text(json.dumps(rows))


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
