"""Which commit of a hub model was loaded: answers of one must never be taken for another's."""

import shutil

from forked_commands import own_variables, run_forked
from tiny_models import build_tiny_causal_lm

COMMITS = {"main": "a" * 40, "v2": "b" * 40}
PROGRAM = """
from cultureval.models.loading import load
from cultureval.models.settings import HFModelSettings
from cultureval.runtime.data.hub import cached_commit
for revision in ("main", "v2", 40 * "b"):
    settings = HFModelSettings(model_name="org/tiny", revision=revision, dtype="float32")
    print(load(settings).identity["revision"], settings.resolved_revision)
print(cached_commit("org/tiny", "sub/vocab.txt"), cached_commit("org/other", "config.json"))
"""


def test_a_model_of_the_hub_is_known_by_its_commit(tmp_path):
    repo = tmp_path / "hf" / "hub" / "models--org--tiny"
    (repo / "refs").mkdir(parents=True)
    built = build_tiny_causal_lm(tmp_path / "built")
    for name, commit in COMMITS.items():
        shutil.copytree(built, repo / "snapshots" / commit)
        (repo / "refs" / name).write_text(commit)
    (repo / "snapshots" / COMMITS["main"] / "sub").mkdir()
    (repo / "snapshots" / COMMITS["main"] / "sub" / "vocab.txt").write_text("")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    done = run_forked("program", [], tmp_path, own_variables(tmp_path) | {"HF_HUB_OFFLINE": "1"}, loaded="ours")
    assert done.returncode == 0, done.stderr
    first, second = COMMITS.values()
    assert done.stdout.split() == [first, first, second, second, second, second, first, "None"]
