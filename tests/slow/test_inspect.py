"""Our tasks in Inspect: the same prompts, scores and standard errors as of `cultureval eval` on the same replies.

A scripted server answers both; docs/harnesses.md has the lines of its table from these runs.
"""

import hashlib
import math
from pathlib import Path

import pytest
import yaml
from faulty_server import MODEL, FaultyServer, flatten
from forked_commands import own_variables, run_forked
from result_files import details_of, results_of

from cultureval.samples.scripted_judge import MODEL as SCRIPTED
from cultureval.samples.scripted_judge import scripted_judge
from cultureval.tasks.catalogue import all_tasks, groups, kind_of
from cultureval.tasks.harnesses.lm_eval_files import harness_name

DOCS = Path(__file__).parents[2] / "docs" / "harnesses.md"
REPLIES = (
    "رجل يشرب الشاي في السوق.",
    "<think>ربما نعم</think>صحيح",
    "خطأ، لأن الصورة لا تظهر ذلك.",
    "Answer: True",
    "The answer is (B)",
    "[10, 20, 200, 180]",
    "    return 1\n\ndef other():\n    pass",
    '[{"verse_id": 1, "explanation": "الشاعر يمدح"}]',
    "الإجابة: ب",
    "",
)
# Of every suite that has tasks that generate; groups too, of which each part is compared.
ASKED = (
    *("qimma_arablegalqa", "qimma_fannorflop", "qimma_code", "qimma_gen_aratrust", "qimma_gen_mizanqa"),
    *("alqasida_mono:habibi_egy", "alqasida_cross:okapi_egy", "alqasida_mt:btec_eng_to_egy"),
    *("alqasida_dev_mono:btec_egy", "jeem_caption", "jeem_vqa:eg", "m2cqa", "m2cqa_aynvqa"),
    *("m2cqa_aynvqa_joint:en", "cvlue_vqa", "cvlue_vg", "cvlue_en_vqa"),
)
ROWS = 3  # of each task
LIMIT = ("--data", "samples", "--limit", str(ROWS))


def reply(prompt, index=0):
    return REPLIES[hashlib.sha256(prompt.encode()).digest()[0] % len(REPLIES)]


def tasks_of(name):
    return groups()[name] if name in groups() else [name]


class Runs:
    """Runs of the same tasks in our command and in Inspect's, asking the same server."""

    def __init__(self, folder, variables, server):
        self.folder, self.server = folder, server
        self.variables = own_variables(folder) | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
        self.variables |= {"TINY_API_KEY": "x"} | variables

    def run(self, module, *command, **variables):
        known = self.variables | variables
        run = run_forked(module, list(command), self.folder, known, network=True, loaded="ours")
        assert run.returncode == 0, (run.stdout + run.stderr)[-3000:]
        return run

    def ours(self, *command, out="ours", **variables):
        file = self.folder / "model.yaml"
        file.write_text(yaml.safe_dump({"model": MODEL, "base_url": self.server.url}), encoding="utf-8")
        self.run("cultureval.scripts.main", "eval", str(file), *command, "--output-dir", out, **variables)
        return results_of(self.folder / out)["results"], details_of(self.folder / out)

    def inspect(self, *command, out="inspect"):
        """The logs of `inspect eval`, by task."""
        from inspect_ai.log import list_eval_logs, read_eval_log

        model = ("--model", f"openai-api/tiny/{MODEL}", "--model-base-url", self.server.url)
        self.run("inspect_ai", "eval", *command, *model, "--log-dir", out, "--display", "log")
        logs = [read_eval_log(log) for log in list_eval_logs(str(self.folder / out))]
        assert [log.error for log in logs if log.status != "success"] == []
        return {log.eval.task.removeprefix("cultureval/"): log for log in logs}


@pytest.fixture(scope="module")
def variables(instrument_variables, encoder_variables):
    return instrument_variables | encoder_variables


@pytest.fixture(scope="module")
def both(variables, tmp_path_factory):
    """(results, details, requests) of ours, (logs, requests) of Inspect."""
    with FaultyServer(reply=reply, reasoning=None) as server, scripted_judge() as judging:
        runs = Runs(tmp_path_factory.mktemp("runs"), variables, server)
        judge = runs.folder / "judge.yaml"
        judge.write_text(yaml.safe_dump({"name": "script", "model": SCRIPTED, "base_url": judging}), encoding="utf-8")
        ours = runs.ours(*ASKED, *LIMIT, CULTUREVAL_JUDGE=str(judge))
        asked = list(server.requests)
        server.requests.clear()
        options = ("-T", "data=samples", "-T", f"limit={ROWS}", "-T", f"judge={judge}")
        logs = runs.inspect(*(f"cultureval/{harness_name(name)}" for name in ASKED), *options)
        return (*ours, asked), (logs, list(server.requests))


def same(one, other):
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or one == pytest.approx(other, rel=1e-6, abs=1e-5)
    return one == other


def scores_of(log, task):
    """The scores of a task's rows, in our order."""
    rows = [sample for sample in log.samples if sample.metadata["task"] == task]
    rows.sort(key=lambda sample: int(str(sample.id).split()[-1]))
    return [sample.scores["cultureval"] for sample in rows]


@pytest.mark.parametrize("name", ASKED)
def test_the_scores_of_each_item_are_the_same(name, both):
    (_, details, _), (logs, _) = both
    lines, text = [], DOCS.read_text(encoding="utf-8")
    for task in tasks_of(name):
        rows, found = details[f"{task}|0"], scores_of(logs[harness_name(name)], task)
        assert len(rows) == len(found) > 0
        for row, score in zip(rows, found, strict=True):
            for metric, value in row["metric"].items():
                if metric.endswith(("_den", "_sums")):  # what scores are made of
                    continue
                if metric not in score.value:  # of an item, of which each answer tells a part
                    assert kind_of(task).rows_per_item > 1 and isinstance(score.value["verdict"], str)
                    continue
                wanted = value["outcome"] if isinstance(value, dict) else _number(value)  # a judge's record
                assert same(wanted, score.value[metric]), (task, metric, value, score)
        lines.append(len(rows))
    kind = all_tasks()[tasks_of(name)[0]].metric_set
    line = f"| `{name}` | {kind} | equal, {sum(lines)}/{sum(lines)} |"
    assert line in text, line


@pytest.mark.parametrize("name", ASKED)
def test_totals_and_standard_errors_are_the_same(name, both):
    (results, _, _), (logs, _) = both
    (score,) = logs[harness_name(name)].results.scores
    found = {metric: one.value for metric, one in score.metrics.items()}
    if tasks_of(name) == [name]:
        wanted = results[f"{name}|0"]
    else:
        wanted = results.get(f"{name}:_average|0", {}) if not all_tasks()[tasks_of(name)[0]].mean else {}
        for task in tasks_of(name):
            headline, label = all_tasks()[task].metrics[0], task.partition(":")[2]
            wanted |= {f"{label}: {one}": results[f"{task}|0"][one] for one in (headline, f"{headline}_stderr")}
        for mean in {all_tasks()[task].mean for task in tasks_of(name)} - {None}:
            wanted |= {f"{mean.partition(':_')[2]}: {metric}": value for metric, value in results[f"{mean}|0"].items()}
    assert not all(math.isnan(_number(value)) for value in wanted.values())
    assert {metric: value for metric, value in wanted.items() if not same(_number(value), found.get(metric))} == {}
    assert set(found) == set(wanted)


def _number(value):
    return math.nan if value is None else value if isinstance(value, str) else float(value)


def test_the_requests_are_the_same(both):
    (_, _, ours), (_, theirs) = both

    def asked(requests):
        return {
            (flatten(one["messages"]), float(one["temperature"]), one["max_tokens"], str(one.get("stop")))
            for one in requests
        }

    assert asked(ours) == asked(theirs)


def test_wrong_options_are_sentences(variables, tmp_path):
    with FaultyServer() as server:
        runs = Runs(tmp_path, variables, server)
        for task, option, sentence in (
            ("cvlue_vg", "box_fromat=qwen_vl", "-T box_fromat: no suite has such an option. Did you mean box_format"),
            ("cvlue_vg", "shuffle=off data=nowhere", "nowhere"),
            ("qimma_gen", "data=samples", "qimma_gen is a suite, not a task"),
        ):
            options = [word for one in option.split() for word in ("-T", one)]
            command = (f"cultureval/{task}", *options, "--model", f"openai-api/tiny/{MODEL}", "--display", "none")
            run = run_forked(
                "inspect_ai",
                ["eval", *command, "--model-base-url", server.url],
                tmp_path,
                runs.variables,
                network=True,
                loaded="ours",
            )
            assert run.returncode == 1 and sentence in run.stdout + run.stderr
        assert not server.requests


def test_examples_and_epochs(variables, tmp_path):
    """The epochs of a row are one cluster: the same answers again change neither scores nor errors of means."""
    task = "alqasida_mono:btec_syr"
    with FaultyServer(reply=reply, reasoning=None) as server:
        runs = Runs(tmp_path, variables, server)
        scores, _ = runs.ours(f"{task}|2", *LIMIT)
        prompts = {flatten(one["messages"]) for one in server.requests}
        options = ("-T", "data=samples", "-T", "shots=2", "--epochs", "2", "--limit", str(ROWS))
        (log,) = runs.inspect(f"cultureval/{harness_name(task)}", *options).values()
    assert {flatten(one["messages"]) for one in server.requests} == prompts
    assert len(log.samples) == 2 * ROWS and len(log.samples[0].messages) == 6  # two examples, the request, the reply
    found = {name: one.value for name, one in log.results.scores[0].metrics.items()}
    wanted = {name: _number(value) for name, value in scores[f"{task}|2"].items()}
    assert {name for name in wanted if not same(wanted[name], found[name])} == set()
