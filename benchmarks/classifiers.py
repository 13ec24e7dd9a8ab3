"""`python -m benchmarks classifiers`: the dialect classifiers on single replies, on batches, and by all profiles."""

import tempfile
from pathlib import Path
from statistics import median
from typing import Annotated, Literal

import typer

from benchmarks.classifier_runs import (
    BATCHED,
    EVERY,
    PUBLISHED_SHARE,
    SINGLE,
    build_models,
    median_ratio,
    random_replies,
    read_replies,
    time_classifiers,
)


def bench_classifiers(
    texts: Annotated[int, typer.Option(min=1, help="Replies of random words, as long as published ones.")] = 32,
    several_lines: Annotated[
        float, typer.Option(min=0, max=1, help="Share of replies of several lines, which `clean` reads line by line.")
    ] = PUBLISHED_SHARE,
    data: Annotated[
        Path | None, typer.Option(help="Your replies instead: rows with `completion` and, if you like, `prompt`.")
    ] = None,
    bert: Annotated[
        Literal["base", "tiny"], typer.Option(help="Size of the classifiers, which have random weights.")
    ] = "base",
    repeats: Annotated[int, typer.Option(min=1, help="Interleaved repeats; medians are shown.")] = 3,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch on the CPU.")] = 1,
    device: Annotated[str, typer.Option(help="torch device.")] = "cpu",
) -> None:
    """Times NADI, ALDi and language identification. Example: python -m benchmarks classifiers --texts 64"""
    import torch

    from cultureval.runtime.devices import choose_device

    device = str(choose_device(device))
    torch.set_num_threads(threads)
    pairs = read_replies(data) if data else random_replies(texts, several_lines)
    with tempfile.TemporaryDirectory() as scratch:
        models = build_models(Path(scratch), bert, device, [text for pair in pairs for text in pair])
        seconds, difference = time_classifiers(pairs, models, repeats)
    words = sorted(len(reply.split()) for _, reply in pairs)
    share = sum("\n" in reply.strip() for _, reply in pairs) / len(pairs)
    print(f"{len(pairs)} replies of {words[0]} to {words[-1]} words, {share:.0%} of several lines")
    clock = "processor seconds" if device == "cpu" else "seconds"
    print(f"Classifiers of BERT's size {bert}, {device}, {threads} thread(s); {clock}, medians of {repeats}:")
    for name, values in seconds.items():
        print(f"  {name}: {median(values):.2f}")
    print(f"one at a time / batched: {median_ratio(seconds[SINGLE], seconds[BATCHED]):.2f}")
    print(f"all profiles / the paper's: {median_ratio(seconds[EVERY], seconds[BATCHED]):.2f}")
    print(f"largest difference of a score: {difference:.0e}")
