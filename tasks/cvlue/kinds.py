"""How CVLUE's tasks are asked and scored.

The paper states no lengths of generations: ours, short answers up to a newline, room for a box in JSON.
"""

from cultureval.prompts.cvlue import docs
from cultureval.runtime.dotted_names import later
from cultureval.tasks.kinds import Kind

METRICS = "cultureval.metrics.cvlue.lighteval"
KINDS: dict[str, Kind] = {
    "cvlue_vqa": Kind(docs.answer_prompt, later(f"{METRICS}:cvlue_vqa_metrics"), 32, ("\n",)),
    "vqa_v2": Kind(docs.answer_prompt, later(f"{METRICS}:vqa_v2_metrics"), 32, ("\n",)),
    "grounding": Kind(
        docs.box_prompt,
        later(f"{METRICS}:grounding_metrics"),
        128,
        unreadable=lambda metrics: bool(metrics["unparsable"]),
    ),
    "dialogue": Kind(docs.dialogue_prompt, later(f"{METRICS}:dialogue_metrics")),
    "dense_dialogue": Kind(docs.dialogue_prompt, later(f"{METRICS}:dialogue_metrics", dense=True)),
    "galleries": Kind(docs.gallery_prompt, later(f"{METRICS}:gallery_metrics")),
}
