"""Judge templates as text files, and the parsers of judges' replies."""

from cultureval.judge_prompts.replies import DoubtfulReply, JudgeReplyError, ReplyReading, read_label, read_scores

__all__ = ["DoubtfulReply", "JudgeReplyError", "ReplyReading", "read_label", "read_scores"]
