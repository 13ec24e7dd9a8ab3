"""`cultureval code`: its sub-commands under one name."""

import typer

from cultureval.scripts import code_check_data, code_evaluate, code_generate

code = typer.Typer(
    help="Arabic HumanEval+ and MBPP+ with EvalPlus. Example: cultureval code generate MODEL --dataset humaneval",
    no_args_is_help=True,
    rich_markup_mode=None,
)
code.command("generate")(code_generate.generate)
code.command("evaluate")(code_evaluate.evaluate)
code.command("check-data")(code_check_data.check_data)
