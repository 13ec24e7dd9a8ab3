"""How CVLUE's tasks are asked and scored.

The paper states no lengths of generations: ours, short answers up to a newline, room for a box in JSON.
"""

from cultureval.prompts.cvlue import rows
from cultureval.runtime.dotted_names import lazy_call
from cultureval.tasks.kinds import Kind

METRICS = "cultureval.metrics.cvlue.lighteval"
RANKED = (
    "its numbers are ranks among all candidates (mean rank, MRR, R@1, R@5, R@10), which one generated choice does not "
    "give; a choice among a few sampled candidates is an easier question, whose score depends on how many are drawn "
    "and how near they are. It needs a model with log-probabilities: transformers, or a vLLM server"
)
KINDS: dict[str, Kind] = {
    "cvlue_vqa": Kind(rows.answer_prompt, lazy_call(f"{METRICS}:cvlue_vqa_metrics"), 32, ("\n",)),
    "vqa_v2": Kind(rows.answer_prompt, lazy_call(f"{METRICS}:vqa_v2_metrics"), 32, ("\n",)),
    "grounding": Kind(rows.box_prompt, lazy_call(f"{METRICS}:grounding_metrics"), 128),
    "dialogue": Kind(rows.dialogue_prompt, lazy_call(f"{METRICS}:dialogue_metrics"), not_generated=RANKED),
    "dense_dialogue": Kind(
        rows.dialogue_prompt, lazy_call(f"{METRICS}:dialogue_metrics", dense=True), not_generated=RANKED
    ),
    "galleries": Kind(rows.gallery_prompt, lazy_call(f"{METRICS}:gallery_metrics"), not_generated=RANKED),
}
