"""`cultureval audit shortcuts` with a tiny model: the real backend, a signature, a manifest."""

import json

from cultureval.tasks.manifest import read_manifest


def test_choices_are_scored_without_question_and_image(cultureval, tiny_lm, tmp_path):
    command = ("audit", "shortcuts", tiny_lm, "qimma_aratrust", "--data", "samples", "--device", "cpu", "--sample", "3")
    done = cultureval(*command, "--findings", "all.jsonl", "--write-manifest", "m.jsonl")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows and all(abs(sum(row["probabilities"]) - 1) < 1e-4 and row["without"] == "question" for row in rows)
    assert "prompt:no_question_ar-" in done.stdout and "backend:transformers" in done.stdout
    assert f"{len(rows)}" in done.stdout and len(read_manifest(tmp_path / "m.jsonl").rows) <= len(rows)
