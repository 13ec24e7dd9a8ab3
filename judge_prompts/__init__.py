"""Judge templates as text files, and the parsers of judges' replies."""

from cultureval.judge_prompts.replies import (
    DoubtfulReply,
    JudgeReplyError,
    Reading,
    parse_json_scores,
    parse_label,
    parse_likert,
    read_json_scores,
    read_label,
    read_likert,
)

__all__ = [
    "DoubtfulReply",
    "JudgeReplyError",
    "Reading",
    "parse_json_scores",
    "parse_label",
    "parse_likert",
    "read_json_scores",
    "read_label",
    "read_likert",
]
