"""Names of the columns of ArabLegalQA's sources, which are not documented; the first one present is read."""

LEGAL_QUESTION = ("questions", "question", "Question", "query")
LEGAL_ANSWER = ("ground_truths", "ground_truth", "answer", "Answer", "answers")
LEGAL_CONTEXT = ("context", "contexts", "Context")
