"""Many requests to servers, each sent once: answers come from the journal, or are written to it as they arrive."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field

from cultureval.runtime.coroutines import run_coroutine
from cultureval.runtime.journal import Journal
from cultureval.runtime.progress import Progress
from cultureval.runtime.servers.client import OpenAIClient
from cultureval.runtime.servers.costs import Budget, RequestSize, Usage
from cultureval.runtime.servers.errors import ModelChanged, RowError
from cultureval.runtime.servers.replies import Answer
from cultureval.runtime.servers.settings import ServerSettings

Question = Callable[[OpenAIClient], Awaitable[Answer]]
OnRowError = Callable[[str, RowError], None]


@dataclass
class Respondent:
    """The model name in servers' replies, which must be the same in all answers of a run."""

    model: str  # its id in requests
    served: str | None = None  # the name in its replies; None before the first

    def check(self, answer: Answer, kept: bool = False) -> None:
        """Compares the name in an answer (of the journal: `kept`) with earlier ones; ModelChanged where it differs."""
        name = answer.get("model")
        if name and self.served and name != self.served:
            source = "Answers in the journal are" if kept else "A reply is"
            raise ModelChanged(
                f"{source} of the model {name!r}; other answers of {self.model} are of {self.served!r}. Set `revision` "
                "to a new name, which starts a new journal, or give the exact version as the model."
            )
        self.served = self.served or name


@dataclass
class Asking:
    """The servers, journal and budget of all questions to a model."""

    servers: ServerSettings
    journal: Journal
    budget: Budget
    respondent: Respondent
    sizes: dict[str, RequestSize] = field(default_factory=dict)  # key of a question -> size, for estimates of costs

    def known(self, keys: Mapping[str, object]) -> dict[str, Answer]:
        """The journal's answers to questions, with costs counted; ModelChanged where they are of several models."""
        found = {key: answer for key in keys if (answer := self.journal.get(key)) is not None}
        for key, answer in found.items():
            self.respondent.check(answer, kept=True)
            self.pay(key, answer)
        return found

    def pay(self, key: str, answer: Answer) -> Usage:
        """Counts an answer's cost, once for its key, and returns its tokens."""
        return self.budget.pay(key, answer, self.sizes.get(key, RequestSize()))


def ask_all(
    asking: Asking,
    questions: Mapping[str, Question],
    description: str,
    on_row_error: OnRowError,
) -> dict[str, Answer]:
    """Answers every question, from the journal if it is there, else from the servers.

    A worker writes each answer into the journal before it sends the next request. On a ServerError or BudgetSpent the
    requests in flight are finished and kept.

    Args:
        asking: The servers, journal and budget.
        questions: Key of the answer (`answer_key`) -> the function that requests it.
        description: Text of the progress bar.
        on_row_error: Called with the key and the error of a question without an answer; may raise to stop the run.

    Returns:
        Key -> answer, in the order of the questions; questions without an answer are absent.
    """
    found = asking.known(questions)
    missing = {key: question for key, question in questions.items() if key not in found}
    if missing:
        with Progress(len(questions), description, "answer", len(found)) as bar:
            run_coroutine(_ask(asking, missing, found, bar, on_row_error))
    return {key: found[key] for key in questions if key in found}


async def _ask(
    asking: Asking,
    missing: Mapping[str, Question],
    found: dict[str, Answer],
    bar: Progress,
    on_row_error: OnRowError,
) -> None:
    """Sends questions, a bounded number at a time; raises the first error after all requests in flight have ended."""
    failures: list[Exception] = []
    waiting: Iterator[tuple[str, Question]] = iter(missing.items())

    async def work(client: OpenAIClient) -> None:
        for key, question in waiting:  # an iterator that all workers share
            if failures:
                return
            try:
                asking.budget.check()
                try:
                    answer = await question(client)
                except RowError as error:
                    on_row_error(key, error)
                else:
                    asking.respondent.check(answer)
                    await asyncio.to_thread(asking.journal.append, {key: answer})
                    asking.pay(key, answer)
                    found[key] = answer
                bar.update(1, str(asking.budget) if asking.budget.settings.budget is not None else "")
            except Exception as error:
                failures.append(error)

    async with OpenAIClient(asking.servers) as client:
        await asyncio.gather(*(work(client) for _ in range(min(asking.servers.concurrency, len(missing)))))
    if failures:
        raise failures[0]
