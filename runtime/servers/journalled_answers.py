"""Many requests to servers, each sent once: answers come from the journal, or are journalled as they arrive.

Two runs with one journal do not ask the same question at the same time (`question_locks`): the second one waits for the
answer, and takes it once the first one's servers have said again who they are.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from cultureval.runtime.coroutines import run_coroutine
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import CHECKS, Journal
from cultureval.runtime.progress import Progress
from cultureval.runtime.question_locks import QuestionLocks
from cultureval.runtime.servers.answers import Answer
from cultureval.runtime.servers.costs import Usage
from cultureval.runtime.servers.errors import AskedToWait, ModelChanged, ServerError
from cultureval.runtime.servers.identity_watch import REPLIES, IdentityWatch, Reply
from cultureval.runtime.servers.openai_client import OpenAIClient
from cultureval.runtime.servers.settings import ServerSettings

logger = logging.getLogger(__name__)

Question = Callable[[OpenAIClient], Awaitable[Answer]]
First = Callable[[Sequence[Question]], Question]
Pay = Callable[[str, Answer | None], Usage]
Again = Callable[[str], Awaitable[None]]
OnFailure = Callable[[str, CulturevalError], bool]
KeyUnder = Callable[[str, Mapping[str, Any]], str]
_ASKED: ContextVar[str] = ContextVar("asked")  # the key of the question that is asked
WHO = "who"  # beside an answer: the models of its replies
_TRIES = 3  # of a question to which two models replied in turns
_LONGEST_AFTER_FAILURE_S = 30.0  # to wait for servers that do not say who they are
_LONGEST_AFTER_INTERRUPTION_S = 5.0
_POLL_S = 0.1  # while other runs ask all that is left


def answer_all(
    settings: ServerSettings,
    questions: Mapping[str, Question],
    journal: Journal,
    pay: Pay,
    description: str = "answers",
    first: First | None = None,
    on_failure: OnFailure | None = None,
    note: Callable[[], str] | None = None,
    silent: bool = False,
    watch: IdentityWatch | None = None,
    key_under: KeyUnder | None = None,
    again: Again | None = None,
) -> dict[str, Answer]:
    """Answer every question, from the journal if it is there, else from the servers.

    Each answer is in the journal before the same worker sends its next request. On an error the requests in
    flight are still finished and kept.

    Args:
        settings: The servers.
        questions: Key of the answer (`answer_key`) -> the function that requests it.
        journal: Read and written.
        pay: Called with key and answer as soon as a server, or another run, has given it: counts its cost, and returns
            the tokens that are shown; with None after a reply of no use, whose cost the journal has (`Journal.paid`).
        description: Text of the progress bar.
        first: Makes a question, of those without an answer yet, that is asked before them; what these cost it is paid.
        on_failure: Called with the key and the error of a question that failed; True skips the question and continues.
        note: Called after each answer; returns the text next to the progress bar.
        silent: Whether no progress is shown, as in all but the first of several processes.
        watch: Whose answers are wanted; None: whoever answers is taken for the model.
        key_under: The key of the same question to another model, from its own key and what identifies that model.
        again: Awaited with a key before a question is tried again whose reply was of no use; raises to end the tries.

    Returns:
        Key -> answer, for all questions except the skipped ones, in their order.

    Raises:
        ServerError: A question was refused, or not answered in time; the answers so far are kept.
        ModelChanged: The servers serve another model than `watch` knows, and it does not go on.
        CulturevalError: The journal was deleted meanwhile, with answers.
    """
    found, awaited = earlier_answers(journal, questions, watch)
    missing = {key: question for key, question in questions.items() if key not in found}
    if missing:
        moved = watch is not None and watch.question is None and any(map(journal.elsewhere, missing))
        if moved:  # what the other model has answered already comes last
            missing = dict(sorted(missing.items(), key=lambda item: journal.elsewhere(item[0]) is not None))
        with Progress(len(questions), description, "answer", len(found), silent, kept_in=journal.folder) as progress:
            waiting, locks = deque(missing.items()), QuestionLocks(journal.folder)
            more = (on_failure, note, watch, key_under, again)
            run = _Run(journal, pay, progress, waiting, locks, found, *more)
            asked = [run.as_check(key, question) for key, question in missing.items() if key not in awaited]
            before = first(asked) if first and asked else None
            run_coroutine(_ask(settings, run, min(settings.concurrency, len(missing)), before, moved))
    return {key: found[key] for key in questions if key in found}


def earlier_answers(
    journal: Journal, keys: Iterable[str], watch: IdentityWatch | None
) -> tuple[dict[str, Answer], set[str]]:
    """The answers of the journal that a run takes: those of its model, and where it goes on after a change, of others.

    Returns:
        Key -> answer; and the keys of answers of other runs that have not made their checks yet.
    """
    keys = list(keys)
    awaited = ask_unconfirmed_anew(journal, keys)
    found = {key: answer for key in keys if key not in awaited and (answer := journal.get(key)) is not None}
    if watch is None:
        return found, awaited
    watch.journal = journal
    watch.expect(list(found.values()))
    found = {key: answer for key, answer in found.items() if watch.takes(key, answer)}
    rest = (key for key in keys if key not in found) if watch.goes_on else ()
    others = {key: where for key in rest if (where := journal.elsewhere(key)) is not None}
    unchecked = ask_unconfirmed_anew(journal, [under for under, _ in others.values()])
    for key, (under, who) in others.items():
        if under not in unchecked and (answer := journal.get(under)) is not None:
            found[key], watch.others[key] = answer, who
    awaited |= {key for key, (under, _) in others.items() if under in unchecked}
    return found, awaited


def ask_unconfirmed_anew(journal: Journal, keys: Iterable[str]) -> set[str]:
    """Passes over answers of ended runs that no check of who the server is followed, and says how many.

    Returns:
        The keys of answers of other runs that have not made their checks yet: these are nobody's until then.
    """
    hidden, awaited = journal.hide_unconfirmed(keys)
    if hidden:
        logger.warning(
            "%s answers of an earlier run are asked for anew: it ended before their server was asked again who it is, "
            "so that nobody knows whether its model gave them.",
            f"{len(hidden):,}",
        )
    return set(awaited)


@dataclass
class _Run:
    """What the workers of one `answer_all` share."""

    journal: Journal
    pay: Pay
    progress: Progress
    waiting: deque[tuple[str, Question]]
    locks: QuestionLocks
    found: dict[str, Answer]
    on_failure: OnFailure | None
    note: Callable[[], str] | None
    watch: IdentityWatch | None
    key_under: KeyUnder | None
    again: Again | None
    failures: list[Exception] = field(default_factory=list)
    awaited: dict[str, Question] = field(default_factory=dict)  # answered by runs that have not made their checks yet
    wasted: set[str] = field(default_factory=set)  # keys of questions with replies of no use
    filing: asyncio.Lock = field(default_factory=asyncio.Lock)  # what these cost
    unfiled: list[tuple[str, Answer]] = field(default_factory=list)  # keys and costs

    async def next(self) -> tuple[str, Question] | None:
        """A question that is now claimed; None where none is left, or after a failure."""
        while self.waiting and not self.failures:
            for _ in range(len(self.waiting)):
                key, question = self.waiting.popleft()
                if not self.locks.take(key):
                    self.waiting.append((key, question))
                    continue
                found, awaited = earlier_answers(self.journal, [key], self.watch)
                if not found and not awaited:
                    return key, question
                self.locks.give_back(key)
                if awaited:
                    self.awaited[key] = question
                else:
                    self.found |= found  # of another run
                    self.pay(key, found[key])
                    self.progress.reuse()
            if self.waiting:
                await asyncio.sleep(_POLL_S)
        return None

    async def waste(self, usage: Mapping[str, Any]) -> None:
        """Counts a reply of no use to the question that is being asked, before that is tried again."""
        key = _ASKED.get()
        self.count_waste(key, {"usage": usage})
        if self.again is not None:
            await self.again(key)

    def as_check(self, key: str, question: Question) -> Question:
        """The question, asked to learn something of the servers: its answer is paid, and of no other use.

        Whose the answer is stands beside it (`WHO`). It raises ModelChanged where another model than the run's
        replies, and the run does not go on.
        """

        async def ask(client: OpenAIClient) -> Answer:
            replies: list[Reply] = []
            tokens = REPLIES.set(replies), _ASKED.set(key)
            try:
                answer = await question(client)
            except ServerError as error:
                await self.file_waste(key, {"usage": error.usage})
                raise
            finally:
                REPLIES.reset(tokens[0])
                _ASKED.reset(tokens[1])
            await self.file_waste(key, answer)
            if self.watch is not None and (other := self.watch.other_of(replies)) and not self.watch.goes_on:
                raise self.watch.error(other.url, other.who, 0)
            return {**answer, WHO: {reply.who for reply in replies}}

        return ask

    async def file_waste(self, key: str, answer: Answer) -> None:
        """Counts what was paid for nothing, and writes it at once, since no answer to the question need follow."""
        if not answer.get("usage"):
            return
        async with self.filing:
            while not self.locks.take(key):
                await asyncio.sleep(_POLL_S)
            if not await self._is_filed(key, answer):
                self.unfiled.append((key, answer))

    async def _is_filed(self, key: str, answer: Answer) -> bool:
        """Writes a cost of a question that is locked, and unlocks it.

        Not while another run has an answer to it that its check is still to confirm.
        """
        try:
            if self.journal.hide_unconfirmed([key])[1]:
                return False
            self.count_waste(key, answer)
            if (there := self.journal.get(key)) is None:
                await asyncio.to_thread(self.journal.withdraw, {key: None})
            else:  # of another run by now: the same once more, with this cost
                there = {name: value for name, value in there.items() if name != CHECKS}
                await asyncio.to_thread(self.journal.append, {key: there})
            return True
        finally:
            self.locks.give_back(key)

    async def file_the_rest(self) -> None:
        """Writes, at the end, the costs that waited for another run; what still has to is in this run's sum alone."""
        for key, answer in self.unfiled:
            if not (self.locks.take(key) and await self._is_filed(key, answer)):
                self.count_waste(key, answer)

    def count_waste(self, key: str, answer: Answer) -> None:
        """Counts what was paid for nothing."""
        self.journal.take_back(key, answer)
        self.wasted.add(key)
        self.pay(key, None)

    async def await_checks(self) -> None:
        """Waits until other runs have checked an answer that this one needs, or until it has to be asked for here."""
        with self.progress.phase("waiting until another run has asked its server again who it is"):
            while self.awaited and not self.waiting:
                await asyncio.sleep(_POLL_S)
                await asyncio.to_thread(self.journal.refresh)
                _, still = earlier_answers(self.journal, self.awaited, self.watch)
                self.waiting.extend((key, self.awaited.pop(key)) for key in [*self.awaited] if key not in still)


async def _ask(settings: ServerSettings, run: _Run, workers: int, first: Question | None, one_first: bool) -> None:
    async with OpenAIClient(settings, run.watch, run.waste) as client:
        try:
            if first is not None:
                await first(client)
            if one_first:  # of a provider whose name led to another model, which only a paid reply tells
                await _work_once(client, run)
            while run.waiting and not run.failures:
                await asyncio.gather(*(_work(client, run) for _ in range(workers)))
                await _make_sure_at_the_end(client, run, _LONGEST_AFTER_FAILURE_S if run.failures else None)
                if not run.failures:
                    await run.await_checks()  # after our own, for which that run may wait
        except (asyncio.CancelledError, KeyboardInterrupt):  # Ctrl-C cancels; other signals may end any task
            await _make_sure_at_the_end(client, run, _LONGEST_AFTER_INTERRUPTION_S)
            raise
        finally:
            await run.file_the_rest()
    if run.failures:
        raise run.failures[0]


async def _make_sure_at_the_end(client: OpenAIClient, run: _Run, limit: float | None) -> None:
    """Asks the servers who they are after the last answer, also where the run has failed; a change comes first."""
    try:
        async with asyncio.timeout(limit):
            await client.make_sure_of_all()
    except TimeoutError:
        logger.warning("The servers do not say any more who they are")
    except ModelChanged as error:
        run.failures.insert(0, error)
    except CulturevalError as error:  # of the journal; what ended the run before, and an interruption, come first
        run.failures.append(error)
        if limit == _LONGEST_AFTER_INTERRUPTION_S or str(error) != str(run.failures[0]):  # which is raised, and told
            logger.warning("%s", error)
    left = run.watch.leave_unconfirmed() if run.watch is not None else 0
    if limit is not None:  # the run has failed, or was interrupted
        run.progress.lose(left)


async def _work(client: OpenAIClient, run: _Run) -> None:
    while await _work_once(client, run):
        pass


async def _work_once(client: OpenAIClient, run: _Run) -> bool:
    """Answers a question, where one is left."""
    if (found := await run.next()) is None:
        return False
    key, question = found
    try:
        await _answer(client, run, key, question)
    finally:
        run.locks.give_back(key)
    return True


async def _answer(client: OpenAIClient, run: _Run, key: str, question: Question) -> None:
    try:
        answer, replies, used = await _by_one_model(client, run, key, question)
    except AskedToWait:
        run.waiting.append((key, question))
        return
    except CulturevalError as error:
        if isinstance(error, ServerError) and error.usage:
            run.count_waste(key, {"usage": error.usage})
        if key in run.wasted:
            await asyncio.to_thread(run.journal.withdraw, {key: None})
        if run.on_failure is not None and run.on_failure(key, error):
            run.progress.update()
        else:
            run.failures.append(error)
        return
    except Exception as error:  # whatever it is, the requests in flight are finished and kept first
        run.failures.append(error)
        return
    try:
        run.wasted.discard(key)  # what it cost is written with the answer
        if run.watch is None:
            await _file(run, key, answer)
        else:
            await _file_by_model(run, run.watch, key, answer, replies)
    except Exception as error:  # also of a full disk, where each further answer would be paid and lost
        run.failures.append(error)
        return
    run.found[key] = answer
    run.progress.count_tokens(used.output)
    run.progress.update(note=run.note() if run.note is not None else "")


async def _file(run: _Run, key: str, answer: Answer) -> None:
    # fsync in a thread: a slow disk must not delay the other requests.
    await asyncio.to_thread(run.journal.append, {key: answer})


async def _by_one_model(
    client: OpenAIClient, run: _Run, key: str, question: Question
) -> tuple[Answer, list[Reply], Usage]:
    """The answer to a question, the replies that it is made of, which are of one model, and its tokens."""
    for _ in range(_TRIES):
        replies: list[Reply] = []
        tokens = REPLIES.set(replies), _ASKED.set(key)
        try:
            answer = await question(client)
        finally:
            REPLIES.reset(tokens[0])
            _ASKED.reset(tokens[1])
        used = run.pay(key, answer)  # before anything is awaited: the budget was reserved until now
        if len({reply.who for reply in replies}) < 2:
            break
        run.count_waste(key, answer)
    else:
        raise CulturevalError("The servers reply in turns as different models to what must be asked of one.")
    if replies and replies[0].model and not answer.get("model"):
        answer = {**answer, "model": replies[0].model}
    return answer, replies, used


async def _file_by_model(run: _Run, watch: IdentityWatch, key: str, answer: Answer, replies: list[Reply]) -> None:
    """Keeps an answer under the identity of the model that gave it.

    Raises:
        ModelChanged: That is not the run's, which does not go on.
    """
    other = watch.other_of(replies)
    under = key if other is None else run.key_under(key, other.who.known) if run.key_under is not None else None
    filed = under is not None and not watch.is_unsure(replies)
    if under is not None and filed:
        checks = watch.files(under, key, replies)
        await _file(run, under, answer | {CHECKS: checks} if checks else answer)
        if watch.is_unsure(replies):  # it changed while the disk was written
            await asyncio.to_thread(run.journal.withdraw, {under: None})
    if other is not None or not filed:  # of no use for this question, or found elsewhere, but paid
        elsewhere = {key: (under, str(other.who))} if under is not None and filed and other is not None else {}
        await asyncio.to_thread(run.journal.withdraw, {key: answer}, elsewhere)
    if other is None:
        if watch.is_unsure(replies):
            watch.others[key] = f"{watch.first} or another"
        return
    watch.others[key] = str(other.who)
    if not watch.goes_on:
        raise watch.error(other.url, other.who, 0)
