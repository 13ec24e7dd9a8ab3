"""`python -m benchmarks`: the benchmarks against other harnesses, in a checkout."""

import typer

from benchmarks import accelerator, classifiers, end_to_end, generation, real_model, retrieval, scoring

app = typer.Typer(
    help="Benchmarks ours against other harnesses, interleaved in one process. Example: python -m benchmarks scoring",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("scoring")(scoring.bench_scoring)
app.command("accelerator")(accelerator.bench_accelerator)
app.command("generation")(generation.bench_generation)
app.command("retrieval")(retrieval.bench_retrieval)
app.command("end-to-end")(end_to_end.bench_end_to_end)
app.command("real-model")(real_model.bench_real_model)
app.command("classifiers")(classifiers.bench_classifiers)

if __name__ == "__main__":
    app()
