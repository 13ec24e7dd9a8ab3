from cultureval.runtime.signatures import combined_hash, installed_versions, signature


def test_a_signature_is_one_line_that_can_be_taken_apart():
    line = signature(task="qimma_gat/0-shot/v0", form="original", judge=None, **installed_versions(["lighteval"]))
    assert line == "task:qimma_gat/0-shot/v0|form:original|lighteval:0.13.0"
    assert signature(model="a|b", form=None, revision="c|") == "model:a%7Cb|revision:c%7C"


def test_a_group_of_subsets_has_one_hash_whatever_their_order():
    assert combined_hash(["a", "b"]) == combined_hash(["b", "a"]) != combined_hash(["a", "c"])
