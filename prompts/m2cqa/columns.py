"""Names of M2CQA's columns, guessed from its paper, since the data could not be seen."""

ID = ("id", "item_id", "sample_id", "ID")
IMAGE = ("image", "Image", "image_path", "img", "picture", "file_name")
Q_PLUS = ("q_plus", "Q_plus", "Q+", "qplus", "true_statement")
Q_MINUS = ("q_minus", "Q_minus", "Q-", "qminus", "false_statements")
Q_MINUS_1 = ("q_minus_1", "Q_minus_1", "Q1-", "q_minus1", "false_statement_1")
Q_MINUS_2 = ("q_minus_2", "Q_minus_2", "Q2-", "q_minus2", "false_statement_2")
