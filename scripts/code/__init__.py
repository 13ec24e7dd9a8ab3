"""`cultureval code`: its sub-commands under one name."""

import typer

from cultureval.scripts.code import check_data, evaluate, generate

code = typer.Typer(
    help="Arabic HumanEval+ and MBPP+ with EvalPlus. Example: cultureval code generate MODEL --dataset humaneval",
    no_args_is_help=True,
    rich_markup_mode=None,
)
code.command("generate")(generate.generate)
code.command("evaluate")(evaluate.evaluate)
code.command("check-data")(check_data.check_data)
