"""`python -m benchmarks retrieval`: time and memory of blockwise recall against a plain matrix product."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchmarks.peak_memory import peak_memory

KEPT = 10  # first items

if TYPE_CHECKING:
    import numpy as np


def bench_retrieval(
    captions: Annotated[int, typer.Option(min=1, help="Captions, distributed evenly over the images.")] = 60_000,
    images: Annotated[int, typer.Option(min=1, help="Images in the gallery.")] = 12_000,
    dimensions: Annotated[int, typer.Option(min=1, help="Dimensions of the embeddings.")] = 512,
) -> None:
    """Recall in both directions on random embeddings. Example: python -m benchmarks retrieval --captions 6000"""
    from cultureval.metrics.cvlue.retrieval import rank_both_ways

    image_vectors, caption_vectors = random_embeddings(captions, images, dimensions)
    of_captions = [[caption % images] for caption in range(captions)]
    of_images = [list(range(image, captions, images)) for image in range(images)]
    print(f"{captions} captions, {images} images, {dimensions} dimensions, float32, both directions")
    peaks: list[float] = []
    arguments = (image_vectors, caption_vectors, of_images, of_captions, KEPT)
    with peak_memory("cpu", peaks):
        seconds, found = timed(lambda: rank_both_ways(*arguments))
    values = {f"{name}@1": float((direction.ranks <= 1).mean()) for name, direction in found.items()}
    print(f"{', '.join(f'{name} {value:.4f}' for name, value in values.items())}, {seconds:.1f} s")
    product, _ = timed(lambda: dense_product(caption_vectors, image_vectors))
    print(f"one dense matrix product: {product:.1f} s; ranks and first items take {seconds / product:.2f} times that")
    vectors = (image_vectors.nbytes + caption_vectors.nbytes) / 2**20
    table = captions * images * 4 / 2**20
    print(f"peak memory of ranking: {max(peaks):.0f} MiB in addition to {vectors:.0f} MiB of embeddings")
    print(f"the full score matrix would take {table:.0f} MiB")


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
    """Only the score matrix, in blocks that are discarded."""
    import numpy as np

    scores = np.empty((block, len(gallery)), dtype=np.float32)
    for start in range(0, len(queries), block):
        part = queries[start : start + block]
        np.matmul(part, gallery.T, out=scores[: len(part)])


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of a call, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result
