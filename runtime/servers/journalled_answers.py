"""Many requests to servers, each sent once: answers come from the journal, or are journalled as they arrive.

Two runs with one journal do not ask the same question at the same time (`claims`): the second one waits for the answer.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from cultureval.runtime.claims import Claims
from cultureval.runtime.coroutines import run_coroutine
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import Journal
from cultureval.runtime.progress import Progress
from cultureval.runtime.servers.answers import Answer
from cultureval.runtime.servers.openai_client import OpenAIClient
from cultureval.runtime.servers.settings import ServerSettings

Question = Callable[[OpenAIClient], Awaitable[Answer]]
OnFailure = Callable[[str, CulturevalError], bool]
_POLL_S = 0.1  # while other runs ask all that is left


def answer_all(
    settings: ServerSettings,
    questions: Mapping[str, Question],
    journal: Journal,
    description: str = "answers",
    first: Question | None = None,
    on_failure: OnFailure | None = None,
    note: Callable[[], str] | None = None,
    silent: bool = False,
    on_answered_elsewhere: Callable[[str, Answer], None] | None = None,
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
        on_answered_elsewhere: Called with key and answer of a question that another run asked meanwhile.

    Returns:
        Key -> answer, for all questions except the skipped ones, in their order.

    Raises:
        ServerError: A question was refused, or not answered in time; the answers so far are kept.
        CulturevalError: The journal was deleted meanwhile, with answers.
    """
    skipped: set[str] = set()
    missing = {key: question for key, question in questions.items() if key not in journal}
    if missing:
        known = len(questions) - len(missing)
        with Progress(len(questions), description, "answer", known, silent, kept_in=journal.folder) as progress:
            waiting, claims = deque(missing.items()), Claims(journal.folder)
            run = _Run(journal, progress, waiting, claims, on_failure, note, on_answered_elsewhere, skipped)
            run_coroutine(_ask(settings, run, min(settings.concurrency, len(missing)), first))
    answers = {key: journal.get(key) if key in skipped else journal.require(key) for key in questions}
    return {key: answer for key, answer in answers.items() if answer is not None}


@dataclass
class _Run:
    """What the workers of one `answer_all` share."""

    journal: Journal
    progress: Progress
    waiting: deque[tuple[str, Question]]
    claims: Claims
    on_failure: OnFailure | None
    note: Callable[[], str] | None
    on_answered_elsewhere: Callable[[str, Answer], None] | None
    skipped: set[str]
    failures: list[Exception] = field(default_factory=list)

    async def next(self) -> tuple[str, Question] | None:
        """A question that is now claimed; None where none is left, or after a failure."""
        while self.waiting and not self.failures:
            for _ in range(len(self.waiting)):
                key, question = self.waiting.popleft()
                if not self.claims.take(key):
                    self.waiting.append((key, question))
                elif (answer := self.journal.get(key)) is None:
                    return key, question
                else:
                    self.claims.give_back(key)
                    self._found(key, answer)
            if self.waiting:
                await asyncio.sleep(_POLL_S)
        return None

    def _found(self, key: str, answer: Answer) -> None:
        if self.on_answered_elsewhere is not None:
            self.on_answered_elsewhere(key, answer)
        self.progress.update()


async def _ask(settings: ServerSettings, run: _Run, workers: int, first: Question | None) -> None:
    async with OpenAIClient(settings) as client:
        if first is not None:
            await first(client)
        await asyncio.gather(*(_work(client, run) for _ in range(workers)))
    if run.failures:
        raise run.failures[0]


async def _work(client: OpenAIClient, run: _Run) -> None:
    while (found := await run.next()) is not None:
        key, question = found
        try:
            await _answer(client, run, key, question)
        finally:
            run.claims.give_back(key)


async def _answer(client: OpenAIClient, run: _Run, key: str, question: Question) -> None:
    try:
        answer = await question(client)
    except CulturevalError as error:
        if run.on_failure is not None and run.on_failure(key, error):
            run.skipped.add(key)
            run.progress.update()
        else:
            run.failures.append(error)
        return
    # fsync in a thread: a slow disk must not delay the other requests.
    await asyncio.to_thread(run.journal.append, {key: answer})
    run.progress.update(note=run.note() if run.note is not None else "")
