"""Names of JEEM's columns, guessed from its paper and card, since the data are gated."""

IMAGE = ("image", "Image", "img", "picture", "image_path", "file_name")
IMAGE_ID = ("image_id", "img_id", "id", "image_name", "image_url", "url")
COUNTRY = ("country", "Country", "dialect", "Dialect", "variety", "region", "lang", "language")
CAPTION_MSA = ("caption_msa", "msa_caption", "MSA_caption", "msa", "MSA", "caption_MSA", "description_msa")
CAPTION_DIALECT = (
    *("caption_dialect", "caption_da", "da_caption", "dialect_caption", "caption_DA", "da", "DA"),
    *("description_da", "description_dialect", "caption"),
)
QUESTIONS = ("questions", "Questions", "qa_questions", "vqa_questions")
ANSWERS = ("answers", "Answers", "qa_answers", "vqa_answers")
PAIRS = ("qa", "qa_pairs", "question_answers", "questions_answers", "vqa", "QA")
