"""`cultureval journal list|size|prune`: what the journal holds, and how it is made smaller."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from cultureval.runtime.errors import counted
from cultureval.runtime.journal import journal_folder
from cultureval.runtime.journal_pruning import holdings, journal_size, prune

journal = typer.Typer(
    help="Lists, measures and prunes the journal of all answers. Example: cultureval journal list",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@journal.command("list")
def list_answers() -> None:
    """Lists whose answers the journal holds: models and judges, numbers, sizes and dates.

    Example: cultureval journal list
    """
    from cultureval.reports.terminal_tables import terminal_table
    from cultureval.runtime.errors import escaped

    rows = [
        [escaped(one.of), f"{one.answers:,}", _mebibytes(one.bytes), _day(one.oldest), _day(one.newest)]
        for one in holdings(journal_folder())
    ]
    print(terminal_table(["answers of", "answers", "MiB", "oldest", "newest"], rows, "lrrll"))


@journal.command()
def size() -> None:
    """Says how large the journal is, and how much of it a run can find.

    Example: cultureval journal size
    """
    found = journal_size(journal_folder())
    print(
        f"{journal_folder()}: {_mebibytes(found.bytes)} MiB in {counted(found.files, 'file')}, and on this machine ",
        end="",
    )
    print(f"an index of {_mebibytes(found.index_bytes)} MiB.")
    replaced = found.bytes - found.answer_bytes
    print(f"{counted(found.answers, 'answer')}: {_mebibytes(found.answer_bytes)} MiB. No run finds the other ", end="")
    print(f"{_mebibytes(replaced)} MiB, replaced answers and {counted(found.damaged, 'damaged line')}; ", end="")
    print("cultureval journal prune deletes them.")


@journal.command("prune")
def prune_answers(
    of: Annotated[str | None, typer.Option("--of", help="Also the answers of this model or judge (`list`).")] = None,
    older_than: Annotated[
        float | None, typer.Option(min=0, metavar="DAYS", help="Also answers that are older.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and change nothing.")] = False,
) -> None:
    """Takes out of the journal what newer answers replace, what is damaged, and the answers that are named.

    Example: cultureval journal prune --older-than 90
    """
    done = prune(journal_folder(), of, older_than, dry_run)
    verb = "would be taken out" if dry_run else "taken out"
    print(
        f"{done.answers:,} answers and {done.others:,} replaced or damaged lines {verb}: {_mebibytes(done.bytes)} MiB."
    )
    if done.in_use:
        print(f"{len(done.in_use)} files are being written, or may be on another machine: left as they are.")


def _mebibytes(number: int) -> str:
    return f"{number / 2**20:,.1f}"


def _day(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 1e9, UTC).strftime("%Y-%m-%d")
