"""`cultureval fetch` against a local server that answers like the hub; reading from the hub and from the mirror."""

import json
import re
import shutil

import pytest
from fake_hub import COMMIT, HubServer
from forked_commands import own_variables, run_forked

from cultureval.metrics.alqasida import dialect_models
from cultureval.metrics.semantic import DEFAULT_MODEL
from cultureval.runtime.patches.sacrebleu import flores200_file
from cultureval.tasks.mirroring import fetch_scorer

ARATRUST = {"Question": "ما حكم القانون؟", "A": "أ) نعم", "B": "ب) لا", "C": None, "Answer": "ا", "Category": "Ethics"}
MIZANQA = {"question": "س؟", "options": ["نعم", "لا"], "answers": ["أ"]}
READ = """
import sys
from cultureval.tasks.options import read_data_options
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.reading import prepare_subset
report = prepare_subset(all_tasks()["qimma_aratrust"], read_data_options()).report
print(report["source"], report["revision"], report["rows"])
"""


@pytest.fixture
def hub_folder(tmp_path):
    """Two of the suite's sources as the hub has them."""
    for repo, row in {"asas-ai/AraTrust": ARATRUST, "adlbh/MizanQA-v0": MIZANQA}.items():
        folder = tmp_path / "hub" / repo
        folder.mkdir(parents=True)
        split = "train" if "Mizan" in repo else "test"
        (folder / f"{split}.jsonl").write_text(f"{json.dumps(row)}\n" * 3, encoding="utf-8")
        (folder / "README.md").write_text(f"---\nlicense: mit\n---\n{repo}\n", encoding="utf-8")
    return tmp_path / "hub"


def run(tmp_path, address, module, *arguments, **environment):
    variables = own_variables(tmp_path) | {"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    variables |= {"CULTUREVAL_FORM": "original"}
    return run_forked(module, arguments, tmp_path, variables | environment, network=True, timeout=300, loaded="ours")


def run_program(tmp_path, address, code, **environment):
    (tmp_path / "program.py").write_text(code, encoding="utf-8")
    return run(tmp_path, address, "program", **environment)


def test_mirror_fetches_resumes_verifies_and_is_a_data_root(tmp_path, hub_folder):
    command = ("cultureval.scripts.main", "fetch", "qimma", "--output-dir", str(tmp_path / "mirror"))
    with HubServer(hub_folder, drop_after=1) as hub:
        broken = run(tmp_path, hub.url, *command)
    assert broken.returncode == 2
    assert "failed" in broken.stdout
    assert "resumes" in broken.stderr
    with HubServer(hub_folder) as hub:
        whole = run(tmp_path, hub.url, *command)
        again = run(tmp_path, hub.url, *command)
    assert whole.returncode == again.returncode == 0, whole.stdout + whole.stderr
    assert len(hub.fetched) == 3  # four files, one of which came before the server broke off; none twice
    assert f"asas-ai/AraTrust at {COMMIT}" in whole.stdout
    assert "not shown  qimma/MCQ_AraTrust" in whole.stdout
    assert re.search(r"qimma_aratrust +asas-ai/AraTrust +3 +0 +0 +2 +522", whole.stdout)
    assert "medarabench-test_split.csv" in whole.stdout  # what must be fetched by hand
    read = run_program(tmp_path, "http://127.0.0.1:9", READ, CULTUREVAL_DATA=str(tmp_path / "mirror"))
    assert read.stdout.split() == ["asas-ai/AraTrust", COMMIT, "3"], read.stderr


def test_a_hub_that_does_not_answer_is_one_sentence(tmp_path):
    command = ("cultureval.scripts.main", "fetch", "m2cqa", "--output-dir", str(tmp_path / "mirror"))
    offline = run(tmp_path, "http://127.0.0.1:9", *command)
    assert offline.returncode == 2
    assert "failed     QCRI/M2CQA: ConnectError" in offline.stdout
    assert offline.stderr.strip() == (
        "cultureval: Some sources could not be fetched (see above). The same command resumes."
    )


def test_rows_come_straight_from_the_hub(tmp_path, hub_folder):
    with HubServer(hub_folder) as hub:
        read = run_program(tmp_path, hub.url, READ)
    assert read.stdout.split() == ["asas-ai/AraTrust", COMMIT, "3"], read.stderr
    cached = run_program(tmp_path, "http://127.0.0.1:9", READ, HF_HUB_OFFLINE="1")
    assert cached.stdout.split() == ["asas-ai/AraTrust", COMMIT, "3"], cached.stderr


SCORE = """
import sys
from cultureval.metrics.alqasida.dialect_models import check_models, models_signature
from cultureval.metrics.semantic import bertscore_model, try_bertscore
from cultureval.metrics.alqasida.translation import check_flores200, flores200_model
check_models(), check_flores200(), try_bertscore(bertscore_model())
print(models_signature(), flores200_model())
"""


@pytest.fixture
def hub_of_scorers(tiny_instruments, tiny_bert, tmp_path):
    """Tiny models under the names of those that score, one of them with weights in a second format."""
    folder = tmp_path / "hub" / "models"
    for kind, name in dialect_models.SETTINGS.items():
        shutil.copytree(tiny_instruments[name], folder / dialect_models.DEFAULTS[kind])
    (folder / dialect_models.DEFAULTS["NADI"] / "pytorch_model.bin").write_bytes(b"not needed")
    shutil.copytree(tiny_bert, folder / DEFAULT_MODEL)
    (tmp_path / "hub" / "files").mkdir()
    shutil.copy(tiny_instruments["flores200_model"], tmp_path / "hub" / "files" / flores200_file()[1].name)
    return tmp_path / "hub"


def test_a_mirror_brings_what_scores_and_a_machine_without_the_hub_scores_with_it(tmp_path, hub_of_scorers):
    root = tmp_path / "mirror"
    command = ("cultureval.scripts.main", "fetch", "qimma", "alqasida", "--output-dir", str(root))
    with HubServer(hub_of_scorers) as hub:
        whole = run(tmp_path, hub.url, *command)
        files = len(hub.fetched)
        again = run(tmp_path, hub.url, *command)
        assert len(hub.fetched) == files  # none twice
        file = fetch_scorer(f"{hub.url}/files/{flores200_file()[1].name}", root)
    for name in (*dialect_models.DEFAULTS.values(), DEFAULT_MODEL):
        assert f"fetched    {name} (scores answers) at {COMMIT}" in whole.stdout, whole.stdout + whole.stderr
    assert "failed     https://" in whole.stdout and "(scores answers)" in again.stdout
    assert file.startswith("fetched")
    assert not (root / "scorers" / dialect_models.DEFAULTS["NADI"] / "pytorch_model.bin").exists()
    offline = {"HF_HUB_OFFLINE": "1", "CULTUREVAL_DATA": str(root)}
    scored = run_program(tmp_path, "http://127.0.0.1:9", SCORE, **offline)
    assert scored.returncode == 0, scored.stderr
    assert f"NADI={dialect_models.DEFAULTS['NADI']}@{COMMIT[:8]}" in scored.stdout
    assert str(root / "scorers") in scored.stdout
