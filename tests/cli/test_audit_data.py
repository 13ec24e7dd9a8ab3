"""From `audit run` to scores without the discarded rows."""

import json
import re

from result_files import details_of

from cultureval import load_results

TASK = "qimma_aratrust"


def test_scores_without_discarded_rows(cultureval, refusal, tiny_lm, tmp_path):
    checked = cultureval("audit", "run", TASK, "--data", "samples")
    assert checked.returncode == 0, checked.stderr
    assert "7 items and 2 few-shot examples of 1 data set: 0 with findings" in checked.stdout
    file = tmp_path / "audit" / "manifest.jsonl"
    head, *rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    rows[0] |= {"decision": "discard", "reasons": ["person:discard"], "by": ["person:a1"]}
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in (head, *rows)), encoding="utf-8")
    run = cultureval("eval", tiny_lm, TASK, "--data", "samples", "--manifest", file, "--output-dir", "by")
    assert run.returncode == 0, run.stderr
    (details,) = details_of(tmp_path / "by").values()
    assert len(details) == len(rows) - 1
    (saved,) = load_results(tmp_path / "by").runs
    assert re.search(r"\|manifest:[0-9a-f]{8}-1\|", saved.record.signatures[0].text)
    rows[1]["hash"] = "0" * 64
    file.write_text("".join(json.dumps(row) + "\n" for row in (head, *rows)), encoding="utf-8")
    told = refusal("eval", tiny_lm, TASK, "--data", "samples", "--manifest", file)
    assert f"changed rows: {rows[1]['row']}" in told
