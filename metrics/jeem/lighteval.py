"""The LightEval metrics of JEEM's reference metrics, which call `caption` and `semantic`.

All values are on the paper's scale (times 100). Each text metric has two variants: `cider` on normalised words and
`cider_raw` on unchanged words.
"""

from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.tasks.requests import Doc

from cultureval.metrics.declared import SUMS
from cultureval.metrics.jeem.caption import MAX_ORDER, bleu_of, score_captions
from cultureval.metrics.jeem.names import BERTSCORE_PARTS, REFERENCE, WORDS
from cultureval.metrics.lighteval.row_scores import Columns, reply_metrics
from cultureval.metrics.semantic import NO_MODEL, bertscore, caption_bertscore_model
from cultureval.runtime.data.content_store import stored_texts
from cultureval.runtime.devices import scoring_device
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.zero_width import without_marks

DEFINITION = "scale=100, CIDEr-D with df=variety, ROUGE-L with beta=1.2, BLEU with closest reference length"


def caption_metrics() -> list[SampleLevelMetric]:
    """JEEM's reference metrics (section 5.1.1), CIDEr first, as it correlates best with people (Table 3).

    CIDEr's document frequencies are of the variety's full reference set, even with --limit; the text store has it under
    `doc.specific["reference_set"]`. The paper reports BERTScore's recall; F1 is added (its footnote 2). With the model
    `none` both are left out.
    """
    model, layer = caption_bertscore_model()
    scored = {name: row for name, row in REFERENCE.items() if model != NO_MODEL or name not in BERTSCORE_PARTS}
    similarity = f"BERTScore of {model}, layer={layer}, idf=no, rescaled=no"
    return reply_metrics(scored, _score_replies, f"{DEFINITION}, {similarity}")


def _score_replies(docs: list[Doc], replies: list[str]) -> Columns:
    references = [doc.get_golds() for doc in docs]
    values: Columns = {}
    for suffix, normalize in WORDS.items():
        scores = score_captions(replies, references, normalize, _reference_set(docs))
        values |= {f"cider{suffix}": scores.cider, f"rouge_l{suffix}": scores.rouge_l}
        counts, of_rows = scores.bleu_statistics, 100 * bleu_of(scores.bleu_statistics)
        for order in range(1, MAX_ORDER + 1):
            values |= {f"bleu_{order}{suffix}": of_rows[:, order - 1], f"bleu_{order}{suffix}{SUMS}": counts}
    model, layer = caption_bertscore_model()
    if model == NO_MODEL:
        return values
    texts, golds = [without_marks(reply) for reply in replies], [[*map(without_marks, group)] for group in references]
    similarity = bertscore(texts, golds, model, layer, device=scoring_device())
    return values | {name: 100 * similarity[part] for name, part in BERTSCORE_PARTS.items()}


def _reference_set(docs: list[Doc]) -> list[str]:
    names = {specific_of(doc).get("reference_set") for doc in docs}
    if len(names) != 1 or None in names:
        raise CulturevalError(f"{docs[0].task_name}: its items do not name one set of references for CIDEr.")
    return stored_texts(names.pop())
