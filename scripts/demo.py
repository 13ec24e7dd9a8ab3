"""`make demo`: every suite, end to end and offline, on the shipped samples with tiny models of random weights."""

import tempfile
from functools import partial
from pathlib import Path

from cultureval.models.preflight import check_model
from cultureval.reports.cvlue.retrieval import evaluate_retrieval
from cultureval.reports.evaluation import evaluate_tasks
from cultureval.runtime.data.hub import go_offline
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import SourceUnavailable
from cultureval.runtime.printing import print_result, steady_streams
from cultureval.runtime.settings import Settings, current_settings, use_settings
from cultureval.samples.scripted_judge import MODEL as JUDGE
from cultureval.samples.scripted_judge import scripted_judge
from cultureval.samples.tiny_models.classifiers import build_tiny_instruments
from cultureval.samples.tiny_models.dual_encoder import build_tiny_dual_encoder
from cultureval.samples.tiny_models.encoder import build_tiny_encoder
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm, build_tiny_vision_lm
from cultureval.scripts.evaluate import print_run
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.cvlue.gallery import TASKS as RETRIEVAL
from cultureval.tasks.cvlue.gallery import read_gallery
from cultureval.tasks.reading import find_subset
from cultureval.tasks.running import quiet_libraries
from cultureval.tasks.suite import Task

NOTICE = """
These scores mean nothing: the models are tiny, have random weights (fixed seed)
and score at chance, and the rows are a few synthetic samples. The demo shows
that every task runs offline, from its data to the table. JEEM's judge is a
script with a real HTTP server on this machine (samples/scripted_judge.py), not
a model. Random weights never end an answer, so answers end after 32 tokens.
"""


def main() -> None:
    """Builds the models, evaluates all suites on the samples, prints the summary of each run."""
    go_offline()
    quiet_libraries()
    with tempfile.TemporaryDirectory() as scratch, scripted_judge() as judge:
        folder = Path(scratch)
        with use_settings(tiny_settings(folder, judge)):
            evaluate_samples(folder)
    print(NOTICE)


def tiny_settings(folder: Path, judge: str) -> Settings:
    """The current settings with tiny scoring models, built in a folder, and the judge's server address."""
    encoder = str(build_tiny_encoder(folder / "tiny-random-bert"))
    (folder / "judge.yaml").write_text(f"{{model: {JUDGE}, base_url: '{judge}'}}")
    return current_settings().with_(
        bertscore_model=encoder,
        caption_bertscore_model=encoder,
        caption_bertscore_layer=2,
        data_root=samples_root(),
        resume=False,
        judges=(str(folder / "judge.yaml"),),
        model_settings={"device": "cpu", "generation_parameters": {"max_new_tokens": 32}},
        **build_tiny_instruments(folder),
    )


def evaluate_samples(folder: Path) -> None:
    """Builds the models in a folder, evaluates all suites on the samples, then prints all summaries."""
    models = {
        False: build_tiny_causal_lm(folder / "tiny-random-llama", max_position_embeddings=2048),
        True: build_tiny_vision_lm(folder / "tiny-random-llava", max_position_embeddings=2048),
    }
    runs = []
    for images, model in models.items():
        tasks = [name for name, task in all_tasks().items() if task.images == images and has_samples(task)]
        if tasks:
            check = partial(check_model, str(model))
            runs.append(evaluate_tasks(str(model), check, tasks, None, "results/demo", skip_unscorable=True))
    from cultureval.models.encoders.dual_encoder import DualEncoder, EncoderSettings

    encoder = build_tiny_dual_encoder(folder / "tiny-random-chinese-clip")
    galleries = {name: read_gallery(name) for name in RETRIEVAL[:1]}
    settings = EncoderSettings(str(encoder), device="cpu")
    retrieval = evaluate_retrieval(galleries, DualEncoder(settings), Path("results/demo"), None)
    for run in runs:
        print_run(run.run, run.path)
    print_result(*retrieval)
    write_page(Path("results/demo"), Path("results/demo-leaderboard"))


def write_page(results: Path, site: Path) -> None:
    """The leaderboard of the demo's models, with the papers' rows; prints where its page is."""
    from cultureval.reports.leaderboard.board import read_board
    from cultureval.reports.leaderboard.site import site_summary, write_site

    board = read_board([results], published=True)
    written = write_site(board, site, "cultureval: demo", ("svg",))
    print_result(f"\nLeaderboard: {site_summary(board, written)}", written.index)


def has_samples(task: Task) -> bool:
    """Whether the samples have the task: AL-QASIDA's cover four dialects; development sets are not run."""
    try:
        find_subset(task, DataOptions(root=samples_root()))
    except SourceUnavailable:
        return False
    return not task.suite.endswith("_dev")


if __name__ == "__main__":
    with steady_streams():
        main()
