"""From `audit check` to scores without the discarded rows: by the manifest, and from the cleaned data."""

import json
import re

from result_files import details_of, results_of

from cultureval import load_results

TASK = "qimma_aratrust"


def test_scores_without_discarded_rows_by_manifest_and_from_cleaned_data(cultureval, refusal, tiny_lm, tmp_path):
    checked = cultureval("audit", "check", TASK, "--data", "samples", "--write-manifest", "manifest.jsonl")
    assert checked.returncode == 0, checked.stderr
    file = tmp_path / "manifest.jsonl"
    head, *rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    rows[0] |= {"decision": "discard", "reasons": ["person:discard"], "by": ["person:a1"]}
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in (head, *rows)), encoding="utf-8")
    applied = cultureval("audit", "apply", TASK, "--data", "samples", "--manifest", file, "--output-dir", "cleaned")
    assert applied.returncode == 0 and "written to cleaned/" in applied.stdout, applied.stderr
    found = {}
    for name, options in (("by", ("--data", "samples", "--manifest", file)), ("from", ("--data", "cleaned"))):
        run = cultureval("eval", tiny_lm, TASK, *options, "--output-dir", name)
        assert run.returncode == 0, run.stderr
        (details,) = details_of(tmp_path / name).values()
        assert len(details) == len(rows) - 1
        (saved,) = load_results(tmp_path / name).runs
        (signed,) = re.findall(r"\|manifest:[0-9a-f]{8}-\d+\|", saved.record.signatures[0].text)
        found[name] = results_of(tmp_path / name)["results"][f"{TASK}|0"], signed
    assert found["by"] == found["from"] and found["by"][1].endswith("-1|")
    rows[1]["hash"] = "0" * 64
    file.write_text("".join(json.dumps(row) + "\n" for row in (head, *rows)), encoding="utf-8")
    told = refusal("eval", tiny_lm, TASK, "--data", "samples", "--manifest", file)
    assert f"{rows[1]['row']} has other content than when it was audited" in told
