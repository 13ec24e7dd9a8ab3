"""What we use of Inspect that is not public: its writer of logs sample by sample, and its error for users.

The public writer wants all samples of a log in memory; what is reached into, `EvalRecorder`, is what the public
`write_eval_log` calls.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

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
