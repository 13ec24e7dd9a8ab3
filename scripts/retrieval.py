"""`cultureval retrieval`: image-text retrieval by dual encoders, over the full gallery, in LightEval's files."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cultureval.runtime.data.hub import go_offline_if_unreachable
from cultureval.runtime.printing import print_result
from cultureval.runtime.saving import require_output_folder
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.tasks.cvlue.gallery import TASKS, read_gallery


def retrieval(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Hub id or folder of a dual encoder.")],
    tasks: Annotated[list[str] | None, typer.Argument(metavar="[TASKS...]", help=f"{', '.join(TASKS)}.")] = None,
    data: Annotated[str | None, typer.Option(help="Data root (DIR/cvlue), or `samples`.")] = None,
    output_dir: Annotated[Path, typer.Option(help="Output folder of results and submission files.")] = Path("results"),
    device: Annotated[str, typer.Option(help="cpu, cuda, ...; default: the accelerator if available.")] = "auto",
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
    batch_size: Annotated[int, typer.Option(min=1, help="Items per batch.")] = 32,
    revision: Annotated[str, typer.Option(help="Revision of the model on the hub.")] = "main",
    captions: Annotated[
        Literal["text", "index"],
        typer.Option(help="Identical captions are one query (text, as in the released scorer), or each is (index)."),
    ] = "text",
    rerank: Annotated[str | None, typer.Option(help="A VLM (as for `eval`) that reranks the first items.")] = None,
    top_k: Annotated[int, typer.Option(min=1, help="Number of items to rerank.")] = 10,
) -> None:
    """Recall of images and captions by a dual encoder. Example: cultureval retrieval MODEL --data samples"""
    go_offline_if_unreachable()
    with use_settings(current_settings().with_(data_root=data)):
        galleries = {name: read_gallery(name, captions == "index") for name in tasks or TASKS[:1]}
    require_output_folder(output_dir)
    from cultureval.models.choice import load_model
    from cultureval.models.encoders.dual_encoder import DualEncoder, EncoderSettings
    from cultureval.reports.cvlue.retrieval import Reranking, evaluate_retrieval

    encoder = DualEncoder(EncoderSettings(model, revision, device, dtype, batch_size))
    reranking = Reranking(rerank, top_k, load_model) if rerank else None
    print_result(*evaluate_retrieval(galleries, encoder, output_dir, reranking))
