"""Two processes that share the texts to be scored: the scores of one process, each made once."""

import multiprocessing
import os
import subprocess
import sys

import pytest
from faulty_server import MODEL, FaultyServer, answer_text
from forked_commands import own_variables
from result_files import details_of
from waiting import PATIENCE, own_port

from cultureval.metrics import semantic
from cultureval.metrics.alqasida.dialect_models import DialectModels
from cultureval.metrics.judges.judge import judge_items
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.metrics.judges.verdicts import JudgeItem
from cultureval.runtime import processes
from cultureval.runtime.journal import Journal
from cultureval.samples.tiny_models.classifiers import build_tiny_aldi, build_tiny_nadi

TEXTS = [f"عايز اروح السوق رقم {number} " + "قطة " * (number % 5) for number in range(24)]
REFERENCES = [f"ذهب الطالب إلى المدرسة {number % 7}" for number in range(24)]
REPLY = "Consistency: 4/5\nRelevance: 4/5\nFluency: 4/5\nDialect Authenticity: 4/5"


def scores(bert, nadi, aldi, url, journal):
    """All scores, and how many pairs this process matched itself."""
    matched = []
    match_all, semantic._match_all = (
        semantic._match_all,
        lambda pairs, *more: matched.extend(pairs) or match_all(pairs, *more),
    )
    f1 = semantic.bertscore(TEXTS, REFERENCES, bert)["f1"]
    semantic._match_all = match_all
    models = DialectModels(str(nadi), str(aldi), device="cpu")
    slots = {"country": "Egypt", "reference": "قطة على كرسي"}
    items = [JudgeItem(str(number), slots | {"generated": text}) for number, text in enumerate(TEXTS)]
    judge = JudgeSettings(model=MODEL, base_url=url, hold_to_form=False, input_token_price=1)
    judged = judge_items(judge, "jeem_caption_reference", items, Journal(journal))
    outcomes = [(verdict.outcome, verdict.scores) for verdict in judged.verdicts]
    return {
        "f1": f1.tolist(),
        "countries": models.country_probabilities(TEXTS).tolist(),
        "dialectness": models.dialectness(TEXTS).tolist(),
        "judged": outcomes,
        "cost": judged.cost,
    }, len(matched)


def scored_by(rank, port, arguments, found):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    with processes.scoring_alone():
        values, matched = scores(*arguments)
        both = processes.gather(matched)
    found.put((values, both))  # only the first process comes here


def test_two_processes_share_bertscore_classifiers_and_judges(arabic_bert, tmp_path):
    folders = build_tiny_nadi(tmp_path / "nadi"), build_tiny_aldi(tmp_path / "aldi")
    with FaultyServer(lambda prompt, count: None, reply=lambda prompt, index: REPLY) as server:
        arguments = (arabic_bert, *folders, server.url, tmp_path / "together")
        port, context = own_port(), multiprocessing.get_context("fork")  # before this process computes anything
        found = context.Queue()
        ranks = [context.Process(target=scored_by, args=(rank, port, arguments, found)) for rank in range(2)]
        for rank in ranks:
            rank.start()
        together, matched = found.get(timeout=PATIENCE)
        for rank in ranks:
            rank.join(PATIENCE)
        asked = {*server.asked.values()}
        alone, of_one = scores(*arguments[:-1], tmp_path / "alone")
    assert [rank.exitcode for rank in ranks] == [0, 0] and found.empty()
    assert sum(matched) == of_one and all(matched)
    assert asked == {1}
    for name in ("f1", "dialectness"):
        assert together[name] == pytest.approx(alone[name], abs=1e-6)
    for own, other in zip(together["countries"], alone["countries"], strict=True):
        assert own == pytest.approx(other, abs=1e-6)
    assert together["judged"] == alone["judged"] and {outcome for outcome, _ in alone["judged"]} == {"scored"}
    assert together["cost"] == alone["cost"] > 0


def test_processes_of_other_hash_seeds_file_every_answer_with_its_row(tmp_path):
    """LightEval puts tasks through a set: of 40 tasks in two processes 19 had the answer to another one's row."""
    with FaultyServer(lambda prompt, count: None, reply=answer_text) as server:
        command = [sys.executable, "-m", "cultureval", "eval", f"{server.url}#{MODEL}", "qimma_gen_arabicmmlu"]
        command += ["--data", "samples", "--limit", "1", "--output-dir", str(tmp_path / "out")]
        group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(own_port())}
        ranks = [
            subprocess.Popen(
                command,
                env=own_variables(tmp_path) | group | {"RANK": str(rank), "PYTHONHASHSEED": str(rank + 1)},
                stderr=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
            )
            for rank in range(2)
        ]
        errors = [rank.communicate(timeout=PATIENCE)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], errors
    found = details_of(tmp_path / "out")
    assert len(found) == 40
    for (row,) in found.values():
        assert row["doc"]["query"] in row["model_response"]["text"][0]
