"""What Docs hold in `specific` is what the suites' types say: every field declared, of its type, none besides."""

import pytest
from pydantic import ConfigDict, TypeAdapter

from cultureval.prompts.alqasida.rows import RequestSpecific, TranslationSpecific
from cultureval.prompts.choices import ChoiceReplySpecific, ChoiceSpecific
from cultureval.prompts.cvlue.rows import BoxSpecific, DialogueSpecific, GallerySpecific, ImageSpecific
from cultureval.prompts.jeem.rows import CaptionSpecific, QuestionSpecific
from cultureval.prompts.m2cqa.rows import JointSpecific, LabelledStatementSpecific, StatementSpecific
from cultureval.prompts.qimma.rows import CodeSpecific, PoemSpecific
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.doc_fields import DocSpecific
from cultureval.runtime.errors import SourceUnavailable
from cultureval.tasks.catalogue import all_tasks, kind_of
from cultureval.tasks.reading import prepare_subset

TYPES = {
    "multiple_choice": ChoiceSpecific,
    "multi_select": ChoiceSpecific,
    "multiple_choice_reply_ar": ChoiceReplySpecific,
    "multi_select_reply_ar": ChoiceReplySpecific,
    "bertscore": DocSpecific,
    "fannorflop": PoemSpecific,
    "code_humaneval": CodeSpecific,
    "code_mbpp": CodeSpecific,
    "jeem_caption": CaptionSpecific,
    "jeem_caption_msa": CaptionSpecific,
    "jeem_vqa": QuestionSpecific,
    "m2cqa_tf": StatementSpecific,
    "m2cqa_answer_reason": StatementSpecific,
    "m2cqa_reason_first": StatementSpecific,
    **dict.fromkeys(
        ("aynvqa_one_word", "aynvqa_tf", "aynvqa_answer_reason", "aynvqa_reason_first"), LabelledStatementSpecific
    ),
    "aynvqa_joint": JointSpecific,
    "cvlue_vqa": ImageSpecific,
    "vqa_v2": ImageSpecific,
    "grounding": BoxSpecific,
    "dialogue": DialogueSpecific,
    "dense_dialogue": DialogueSpecific,
    "galleries": GallerySpecific,
    "alqasida_cross": RequestSpecific,
    "alqasida_mono": RequestSpecific,
    "alqasida_mt": TranslationSpecific,
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTUREVAL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.slow
@pytest.mark.parametrize("metric_set", TYPES)
@pytest.mark.usefixtures("cache")
def test_docs_of_the_samples_hold_what_their_type_declares(metric_set):
    import json

    exact = type(metric_set, (TYPES[metric_set],), {"__pydantic_config__": ConfigDict(extra="forbid", strict=True)})
    adapter, seen = TypeAdapter(exact), 0
    for task in (task for task in all_tasks().values() if task.kind.name == metric_set):
        try:
            subset = prepare_subset(task, DataOptions(root=samples_root()))
        except SourceUnavailable:  # the samples hold some of the subsets
            continue
        rows = (subset.folder / "test.jsonl").read_text(encoding="utf-8").splitlines()
        for row in map(json.loads, rows):
            adapter.validate_python(kind_of(task.task).prompt(row, task.task).specific)
            seen += 1
    assert seen


def test_every_kind_of_our_suites_has_a_type():
    assert {task.kind.name for task in all_tasks().values()} == set(TYPES)
