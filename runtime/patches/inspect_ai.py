"""Inspect: its private writer of logs sample by sample.

The public `write_eval_log` needs all samples in memory. We call the `EvalRecorder` that it uses.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspect_ai.log import EvalResults, EvalSample, EvalSpec, EvalStats

BUFFERED = 32  # samples; the recorder loops over all of them at each sample


def write_log(
    file: Path,
    spec: "EvalSpec",
    stats: "EvalStats",
    samples: Iterable["EvalSample"],
    results: Callable[[int], "EvalResults"],
) -> int:
    """Writes a finished log, a few samples in memory at a time; returns the number of samples.

    `file` ends in .eval, and is replaced once the new one is complete. `results` takes the number of samples and gives
    the scores.
    """
    import anyio
    from inspect_ai._util import zipfile

    zipfile._ZSTD_THREADS = 0  # by default each sample starts and ends twelve threads
    part = file.with_name(f".{file.stem}.part.eval")
    part.unlink(missing_ok=True)  # left by a killed command
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
        images = any(part.type == "image" for part in parts)  # `condense_sample` stores each image once
        await recorder.log_sample(spec, condense_sample(sample) if images else sample)
        if count % BUFFERED == 0 or images:
            for log in recorder.data.values():  # the recorder's flush would copy the whole file each time
                await log.write_buffered_samples()
    await recorder.log_finish(spec, "success", stats, results(count), None, header_only=True)
    return count
