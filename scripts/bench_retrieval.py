"""`cultureval bench retrieval`: time and memory of blockwise recall against the bare matrix product."""

import resource
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np


def bench_retrieval(
    captions: Annotated[int, typer.Option(min=1, help="Captions, spread over the images in turn.")] = 60_000,
    images: Annotated[int, typer.Option(min=1)] = 12_000,
    dimensions: Annotated[int, typer.Option(min=1, help="Of the embeddings.")] = 512,
) -> None:
    """Recall in both directions on random embeddings. Example: cultureval bench retrieval --captions 6000"""
    from cultureval.metrics.retrieval import recall

    image_vectors, caption_vectors = random_embeddings(captions, images, dimensions)
    of_captions = [[caption % images] for caption in range(captions)]
    of_images = [list(range(image, captions, images)) for image in range(images)]
    asking = {"IR": (caption_vectors, image_vectors, of_captions), "TR": (image_vectors, caption_vectors, of_images)}
    started = peak_bytes()
    print(f"{captions} captions, {images} images, {dimensions} dimensions, float32, both directions")
    seconds = {}
    for name, (queries, gallery, correct) in asking.items():
        seconds[name], found = timed(lambda q=queries, g=gallery, c=correct: recall(q, g, c))
        print(f"{name}: {', '.join(f'R@{k} {value:.4f}' for k, value in found.items())}, {seconds[name]:.1f} s")
    peak = peak_bytes()
    product, _ = timed(lambda: dense_product(caption_vectors, image_vectors))
    total = sum(seconds.values())
    print(f"one dense matrix product: {product:.1f} s; both directions together take {total / product:.2f} times that")
    print(f"peak memory of the process: {peak / 2**30:.2f} GiB ({started / 2**30:.2f} GiB before the first recall)")
    print(f"the whole table of scores would take {captions * images * 4 / 2**30:.2f} GiB more")


def random_embeddings(captions: int, images: int, dimensions: int) -> "tuple[np.ndarray, np.ndarray]":
    """Images and captions of length 1, each caption near its image (fixed seed)."""
    import numpy as np

    numbers = np.random.default_rng(0)
    vectors = numbers.standard_normal((images, dimensions), dtype=np.float32)
    texts = np.empty((captions, dimensions), dtype=np.float32)
    for start in range(0, captions, images):
        part = texts[start : start + images]
        part[:] = vectors[: len(part)] + 6 * numbers.standard_normal(part.shape, dtype=np.float32)
    for table in (vectors, texts):
        table /= np.linalg.norm(table, axis=1, keepdims=True)
    return vectors, texts


def dense_product(queries: "np.ndarray", gallery: "np.ndarray", block: int = 2048) -> None:
    """The table of scores and nothing else, in blocks, each of which is thrown away."""
    import numpy as np

    scores = np.empty((block, len(gallery)), dtype=np.float32)
    for start in range(0, len(queries), block):
        part = queries[start : start + block]
        np.matmul(part, gallery.T, out=scores[: len(part)])


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """Seconds that a call took, and what it gave."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def peak_bytes() -> int:
    """Most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
