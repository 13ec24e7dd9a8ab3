from types import SimpleNamespace

from cultureval.runs import signature as signing
from cultureval.runtime.settings import Option, current_settings, use_settings
from cultureval.runtime.signatures import combined_hash, installed_versions, signature


def test_a_signature_is_one_line_that_can_be_taken_apart():
    line = signature(task="qimma_gat/0-shot/v0", form="original", judge=None, **installed_versions(["lighteval"]))
    assert line == "task:qimma_gat/0-shot/v0|form:original|lighteval:0.13.0"
    assert signature(model="a|b", form=None, revision="c|") == "model:a%7Cb|revision:c%7C"


def test_a_group_of_subsets_has_one_hash_whatever_their_order():
    assert combined_hash(["a", "b"]) == combined_hash(["b", "a"]) != combined_hash(["a", "c"])


def test_options_that_differ_are_written_differently(monkeypatch):
    options = [Option("left", "CULTUREVAL_LEFT", "", ""), Option("right", "CULTUREVAL_RIGHT", "", "")]
    suite = SimpleNamespace(part=lambda name: options)
    monkeypatch.setattr(signing, "all_suites", lambda: {"qimma": suite})
    written = {}
    for given in (("a", "b"), ("a,right=b", ""), ('"a,right=b"', ""), ("a\nb", ""), ("a\\nb", ""), ("a\u2028b", "")):
        with use_settings(current_settings().with_(suite=dict(zip(("left", "right"), given, strict=True)))):
            written[given] = signing.options_of("qimma_aratrust")
    assert written["a", "b"] == "left=a,right=b" and written["a,right=b", ""] == 'left="a,right=b"'
    assert len({*written.values()}) == len(written) and all(len(line.splitlines()) == 1 for line in written.values())
