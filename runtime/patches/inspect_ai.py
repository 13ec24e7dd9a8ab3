"""What we use of Inspect that is not public: its writer of logs sample by sample, and its error for users.

The public writer wants all samples of a log in memory; what is reached into, `EvalRecorder`, is what the public
`write_eval_log` calls.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.runtime.patches.table import expect, patched, source_of

if TYPE_CHECKING:
    from inspect_ai.log import EvalResults, EvalSample, EvalSpec, EvalStats

BUFFERED = 32  # samples; the recorder goes through all of them at each sample
BUFFERED_LETTERS = 8 * 2**20


def write_log(
    file: Path,
    spec: "EvalSpec",
    stats: "EvalStats",
    samples: Iterable["EvalSample"],
    results: Callable[[int], "EvalResults"],
) -> int:
    """Writes a finished log; a log of that name is replaced once the new one is whole.

    Args:
        file: Ends in .eval; its folder exists.
        samples: Taken one by one; a few of them are in memory at a time.
        results: Gives the scores for the number of samples.

    Returns:
        The number of samples.
    """
    import anyio
    from inspect_ai._util import zipfile

    zipfile._ZSTD_THREADS = 0  # with its 12, each sample starts and ends twelve threads
    part = file.with_name(f".{file.stem}.part.eval")
    part.unlink(missing_ok=True)  # of a killed command, or a link
    try:
        count = anyio.run(_write, part, spec, stats, samples, results)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    return count


def refusal(sentence: str) -> Exception:
    """The error that `inspect` prints as a sentence, without a traceback."""
    from inspect_ai._util.error import PrerequisiteError

    return PrerequisiteError(sentence)


async def _write(
    file: Path,
    spec: "EvalSpec",
    stats: "EvalStats",
    samples: Iterable["EvalSample"],
    results: Callable[[int], "EvalResults"],
) -> int:
    from inspect_ai.log import EvalPlan, condense_sample
    from inspect_ai.log._recorders.eval import EvalRecorder

    recorder = EvalRecorder(str(file.parent))
    await recorder.log_init(spec, str(file), clean=True)
    await recorder.log_start(spec, EvalPlan())
    count, waiting, letters = 0, 0, 0
    for sample in samples:
        await recorder.log_sample(spec, condense_sample(sample) if _has_media(sample) else sample)
        count, waiting, letters = count + 1, waiting + 1, letters + _letters(sample)
        if waiting >= BUFFERED or letters >= BUFFERED_LETTERS:
            for log in recorder.data.values():  # the recorder's flush would copy the whole file each time
                await log.write_buffered_samples()
            waiting, letters = 0, 0
    await recorder.log_finish(spec, "success", stats, results(count), None, header_only=True)
    return count


def _has_media(sample: "EvalSample") -> bool:
    """Whether condensing, which keeps each image of a sample once, has something to do."""
    return any(
        part.type == "image" for message in sample.messages for part in message.content if not isinstance(part, str)
    )


def _letters(sample: "EvalSample") -> int:
    """About how much memory a sample takes: its texts and images."""
    parts = [part for message in sample.messages for part in message.content]
    texts = [part if isinstance(part, str) else getattr(part, "image", getattr(part, "text", "")) for part in parts]
    return sum(map(len, texts))


@patched(
    "inspect_ai",
    "inspect_ai.log._recorders.eval.EvalRecorder",
    "The public writer of logs wants all samples of a log in memory.",
)
def _recorder_canary() -> None:
    public = source_of("inspect_ai.log._recorders.eval")
    expect("def _write_eval_log_with_recorder(" in public, "write_eval_log no longer goes through EvalRecorder")
    for call in ("recorder.log_init(log.eval, output_file, clean=True)", "recorder.log_start(log.eval, log.plan)"):
        expect(call in public, f"the public writer no longer calls {call}: write logs as it does")
    expect("for sample in log.samples or []:" in public, "the public writer no longer takes all samples at once")
    for name in (
        "async def write_buffered_samples(self)",
        "self.data: dict[str, ZipLogFile]",
        "header_only: bool = False",
    ):
        expect(name in public, f"the recorder has no {name} any more")


@patched(
    "inspect_ai",
    "inspect_ai._util.zipfile._ZSTD_THREADS",
    "Each sample of a log is compressed by twelve threads of its own, whose start takes a third of the time.",
)
def _threads_canary() -> None:
    code = source_of("inspect_ai._util.zipfile")
    for part in ("_ZSTD_THREADS = 12", "ZstdCompressor(level=level, threads=_ZSTD_THREADS)"):
        expect(part in code, f"samples are not compressed with {part} any more: see whether each still starts threads")


@patched(
    "inspect_ai",
    "inspect_ai._util.error.PrerequisiteError",
    "Any other error of a task is shown with a traceback; it is in no public module.",
)
def _errors_for_users_have_no_traceback() -> None:
    source = source_of("inspect_ai._util.error")
    expect("class PrerequisiteError(Exception)" in source, "Inspect's error for users has another name now")
    expect("if isinstance(exception, PrerequisiteError):" in source, "Inspect shows its error for users otherwise now")
