"""Many requests to servers, each sent once: answers come from the journal, or are journalled as they arrive."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import Journal
from cultureval.runtime.progress import Progress
from cultureval.runtime.servers.answers import Answer
from cultureval.runtime.servers.openai_client import OpenAIClient
from cultureval.runtime.servers.settings import ServerSettings

Question = Callable[[OpenAIClient], Awaitable[Answer]]
OnFailure = Callable[[str, CulturevalError], bool]


def answer_all(
    settings: ServerSettings,
    questions: Mapping[str, Question],
    journal: Journal,
    description: str = "answers",
    first: Question | None = None,
    on_failure: OnFailure | None = None,
    note: Callable[[], str] | None = None,
    silent: bool = False,
) -> dict[str, Answer]:
    """Answer every question, from the journal if it is there, else from the servers.

    Each answer is in the journal before the same worker sends its next request. On an error the requests in
    flight are still finished and kept.

    Args:
        settings: The servers.
        questions: Key of the answer (`answer_key`) -> the function that requests it.
        journal: Read and written.
        description: Text of the progress bar.
        first: Awaited before the first request, if any has to be sent.
        on_failure: Called with the key and the error of a question that failed; True skips the question and continues.
        note: Called after each answer; returns the text next to the progress bar.
        silent: Whether no progress is shown, as in all but the first of several processes.

    Returns:
        Key -> answer, for all questions except the skipped ones, in their order.

    Raises:
        ServerError: A question was refused, or not answered in time; the answers so far are kept.
    """
    missing = {key: question for key, question in questions.items() if key not in journal}
    if missing:
        known = len(questions) - len(missing)
        with Progress(len(questions), description, "answer", known, silent, kept_in=journal.folder) as progress:
            run = _Run(journal, progress, iter(missing.items()), on_failure, note)
            asyncio.run(_ask(settings, run, min(settings.concurrency, len(missing)), first))
    return {key: journal.get(key) for key in questions if key in journal}


@dataclass
class _Run:
    """What the workers of one `answer_all` share."""

    journal: Journal
    progress: Progress
    waiting: Iterator[tuple[str, Question]]
    on_failure: OnFailure | None
    note: Callable[[], str] | None
    failures: list[Exception] = field(default_factory=list)


async def _ask(settings: ServerSettings, run: _Run, workers: int, first: Question | None) -> None:
    async with OpenAIClient(settings) as client:
        if first is not None:
            await first(client)
        await asyncio.gather(*(_work(client, run) for _ in range(workers)))
    if run.failures:
        raise run.failures[0]


async def _work(client: OpenAIClient, run: _Run) -> None:
    for key, question in run.waiting:
        if run.failures:
            return
        try:
            answer = await question(client)
        except CulturevalError as error:
            if run.on_failure is not None and run.on_failure(key, error):
                run.progress.update()
                continue
            run.failures.append(error)
            return
        # fsync in a thread: a slow disk must not delay the other requests.
        await asyncio.to_thread(run.journal.append, {key: answer})
        run.progress.update(note=run.note() if run.note is not None else "")
