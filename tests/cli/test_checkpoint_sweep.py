"""Checkpoints of one architecture in one process: the same scores and answers as in processes of their own."""

import json
from pathlib import Path

import yaml
from result_files import details_of, results_of

from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm
from cultureval.samples.tiny_models.text_parts import train_tokenizer

SUITES = ["qimma_aratrust", "qimma_gen_aratrust"]
READ = "its weights were read into the model of the run before"


def of_run(folder: Path) -> tuple[dict, dict, dict]:
    """Scores, details and the model's record."""
    results = results_of(folder)
    return results["results"], details_of(folder), results["cultureval"]["model"]


def test_the_next_checkpoint_is_read_into_the_model_that_is_there(tmp_path: Path, cultureval) -> None:
    tokenizer = train_tokenizer()
    for seed, name in enumerate(("step-1", "step-2")):
        folder = build_tiny_causal_lm(tmp_path / name, "qwen2", seed=seed, tokenizer=tokenizer)
        generation = json.loads((folder / "generation_config.json").read_text())
        (folder / "generation_config.json").write_text(json.dumps(generation | {"stop_strings": ["e", "ا"]}))
    weights = (tmp_path / "step-1" / "model.safetensors").read_bytes()
    plan = {"models": ["./step-1", "./step-2"], "suites": SUITES, "output_dir": "sweep"}
    plan["options"] = "--data samples --model-args max_new_tokens=8"
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    ended = cultureval("run", "plan.yaml")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    logs = {
        (model, suite): (tmp_path / "sweep" / model / suite / "run.log").read_text()
        for model in ("step-1", "step-2")
        for suite in SUITES
    }
    anew = [key for key, log in logs.items() if READ not in log]
    assert anew == [("step-1", SUITES[0])], "only the first is loaded"
    assert (tmp_path / "step-1" / "model.safetensors").read_bytes() == weights
    for suite in SUITES:
        alone = cultureval("eval", "./step-2", suite, *plan["options"].split(), "--no-resume", "--output-dir", "alone")
        assert alone.returncode == 0, alone.stderr
        together = of_run(tmp_path / "sweep" / "step-2" / suite)
        assert json.dumps(together, default=str) == json.dumps(of_run(tmp_path / "alone"), default=str)
        assert together[1] != of_run(tmp_path / "sweep" / "step-1" / suite)[1], "other weights answer otherwise"
        (tmp_path / "alone").rename(tmp_path / f"alone-{suite}")
