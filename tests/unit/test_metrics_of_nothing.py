"""A public metric of no item is a ValueError, never a number that looks like a score: all modules of `metrics`."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import cultureval.metrics
from cultureval.runtime.errors import CulturevalError

# Adapters of LightEval's objects; the engines of judges and of code, whose functions take files, servers and sandboxes.
LEFT_OUT = ("lighteval", "judges", "code")
# Of one text, one item or names: "no words" and "no gold" have meanings there; and steps between others.
OF_ONE_ITEM = {
    *("ngrams", "longest_common_subsequence", "bleu_statistics", "bleu_of", "rouge_l", "cider_d", "tokenize"),
    *("token_groups", "iou", "box_scores", "pair_with_gold", "batches_by_length", "gold_set_match", "declare"),
    *("profiles_of", "by_profile", "with_profiles", "right_judgements", "percentile_difference", "harmonic_mean"),
    *("predicted_boxes", "box_warnings", "ranking_warnings", "holm"),
    "parse_labels",
    *("score_of_sums", "item_counts", "number", "f1_sums", "image_refused", "report_of_counts", "with_interval"),
    *(
        "spbleu_gain_of_sums",
        "sentence_scores",
        "f1_of_sums",
        "item_columns",
        "errors_of_ratio",
        "jackknife",
        "at_ends",
    ),
    *("spearman", "one_way", "regression_tree"),  # nan or nothing, as they say
}
TEXTS = {"country": "egy", "name": "bleu"}
TABLES = {"country_probs": (0, 18), "verdicts": (0, 3), "q_minus": (0, 2), "a_minus": (0, 2), "b_minus": (0, 2)}
TABLES |= {"images": (0, 2), "queries": (0, 2), "gallery": (0, 2), "scores": (0, 100), "relevance": (0, 100)}


def public_functions():
    for module in pkgutil.walk_packages(cultureval.metrics.__path__, "cultureval.metrics."):
        if set(module.name.split(".")) & set(LEFT_OUT):
            continue
        for name, function in vars(importlib.import_module(module.name)).items():
            own = inspect.isfunction(function) and function.__module__ == module.name and name[0] != "_"
            if own and name not in OF_ONE_ITEM and takes_items(function):
                yield pytest.param(function, id=f"{module.name.removeprefix('cultureval.metrics.')}.{name}")


def takes_items(function):
    return any(isinstance(value, list | dict | np.ndarray) for value in arguments(function).values())


def arguments(function):
    """No items for each argument that must be given."""
    needed = [one for one in inspect.signature(function).parameters.values() if one.default is one.empty]
    return {one.name: nothing(one.name, one.annotation) for one in needed}


def nothing(name, annotation):
    kind = str(annotation)
    if "Mapping" in kind or "dict" in kind:
        return {}
    if any(word in kind for word in ("Sequence", "ndarray", "list", "typing.Any")) and "float] | None" not in kind:
        return np.zeros(TABLES[name]) if name in TABLES and "Mapping" not in kind else []
    return {"int": 1, "float": 1.0}.get(getattr(annotation, "__name__", ""), TEXTS.get(name, "x"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("function", public_functions())
def test_a_metric_of_no_item_is_a_value_error(function):
    with pytest.raises((ValueError, CulturevalError)):
        function(**arguments(function))
