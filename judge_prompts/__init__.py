"""Judge templates as text files, and the parsers of judges' replies."""

from cultureval.judge_prompts.replies import DoubtfulReply, JudgeReplyError, Reading, read_label, read_scores

__all__ = ["DoubtfulReply", "JudgeReplyError", "Reading", "read_label", "read_scores"]
