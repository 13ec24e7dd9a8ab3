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


def write_log(
    file: Path,
    spec: "EvalSpec",
    stats: "EvalStats",
    samples: Iterable["EvalSample"],
    results: Callable[[int], "EvalResults"],
) -> int:
    """Writes a finished log, a few samples in memory at a time; returns how many there are.

    `file` ends in .eval, and is replaced once the new one is whole; `results` gives the scores for the number.
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


async def _write(
    file: Path,
    spec: "EvalSpec",
    stats: "EvalStats",
    samples: Iterable["EvalSample"],
    results: Callable[[int], "EvalResults"],
) -> int:
    from inspect_ai.log import EvalPlan, condense_sample
    from inspect_ai.log._recorders.eval import EvalRecorder

    recorder, count = EvalRecorder(str(file.parent)), 0
    await recorder.log_init(spec, str(file), clean=True)
    await recorder.log_start(spec, EvalPlan())
    for count, sample in enumerate(samples, start=1):
        parts = [part for message in sample.messages for part in message.content if not isinstance(part, str)]
        images = any(part.type == "image" for part in parts)  # each is kept once
        await recorder.log_sample(spec, condense_sample(sample) if images else sample)
        if count % BUFFERED == 0 or images:
            for log in recorder.data.values():  # the recorder's flush would copy the whole file each time
                await log.write_buffered_samples()
    await recorder.log_finish(spec, "success", stats, results(count), None, header_only=True)
    return count
