"""How JEEM's tasks are asked and scored; the lengths of generations are ours."""

from cultureval.metrics.semantic import NO_MODEL, caption_bertscore_model, check_caption_bertscore
from cultureval.prompts.jeem import rows
from cultureval.runtime.data.scorers import versioned_name
from cultureval.runtime.dotted_names import lazy_call
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.extras import require_camel_tools
from cultureval.runtime.settings import current_settings
from cultureval.tasks.kinds import Instrument, Kind


def _bertscore() -> str:
    model, layer = caption_bertscore_model()
    if model == NO_MODEL:
        return "no BERTScore"
    return f"BERTScore({versioned_name(model)},layer {layer},no idf,no rescaling)"


def _check() -> None:
    require_camel_tools()
    if current_settings().caption_bertscore_model not in (None, "", NO_MODEL):
        check_caption_bertscore()  # a model that is named is wanted


def _lacking() -> str:
    if current_settings().caption_bertscore_model:
        return ""
    try:
        check_caption_bertscore()
    except CulturevalError as error:
        return f"JEEM's BERTScore is left out. {error}"
    return ""


BERTSCORE = Instrument(
    name=_bertscore,
    check=_check,
    sources=lambda: caption_bertscore_model()[:1],
    lacking=_lacking,
    without={"caption_bertscore_model": NO_MODEL},
    needs="BERTScore model",
)
METRICS = lazy_call("cultureval.metrics.jeem.lighteval:caption_metrics")
KINDS: dict[str, Kind] = {
    "jeem_caption": Kind(*(rows.caption_prompt, METRICS, 512, (), BERTSCORE), judge_templates=rows.CAPTION_TEMPLATES),
    "jeem_caption_msa": Kind(*(rows.caption_prompt, METRICS, 512, (), BERTSCORE), judge_templates=rows.MSA_TEMPLATES),
    "jeem_vqa": Kind(*(rows.question_prompt, METRICS, 256, (), BERTSCORE), judge_templates=rows.VQA_TEMPLATES),
}
