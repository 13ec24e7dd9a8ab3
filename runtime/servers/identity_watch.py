"""Whether the servers of a run are still who they were: every reply is compared, and they are asked again.

Each reply names a model, and often a fingerprint; both are compared with those of the run (`IdentityWatch.took`). A
server that says the same of itself whatever it serves is found by asking it again who it is: after a lost connection,
from time to time, and after the last answer. Answers since the last time that it was known are then nobody's, and are
taken out of the journal.

So that a killed run leaves none of these behind, an answer names the check that is to follow it (`journal.CHECKS`), and
counts as the model's once that is noted in the journal as passed; the next run asks anew what is not confirmed so.
"""

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from cultureval.runtime.errors import counted
from cultureval.runtime.journal import Journal
from cultureval.runtime.journal_lines import UNCONFIRMED
from cultureval.runtime.servers.answers import name_of
from cultureval.runtime.servers.errors import ModelChanged
from cultureval.runtime.servers.identity import IdentityQuestion, ServerIdentity

logger = logging.getLogger(__name__)

LEAST_PAUSE_S = 10.0  # between two questions who a server is, without a reason to ask
SHARE = 0.02  # of a run's time that such questions may take
ALONE = 3  # times that a server is asked again whose answer to the short question has changed
_POLL_S = 0.05


class Filed(NamedTuple):
    """An answer in the journal that no check has confirmed yet.

    Attributes:
        key: In the journal.
        asked: The key of the run's question, which is another one where another model answered.
        named: Whether the replies named their model.
        check: The name of the check that is to confirm it.
    """

    key: str
    asked: str
    named: bool
    check: str


class Reply(NamedTuple):
    """A reply to a question.

    Attributes:
        url: The server that gave it.
        model: What it calls the model; None where it does not say.
        who: The model that gave it.
        changes: How often its server had changed unseen.
    """

    url: str
    model: str | None
    who: ServerIdentity
    changes: int


# The replies to the question that is being asked, in the order of their arrival.
REPLIES: ContextVar[list[Reply] | None] = ContextVar("replies", default=None)

_KEPT = (
    "Answers that are surely the first model's are kept as its own; those whose replies name the other one, under its "
    "own identity."
)
_BOTH = "or pass --on-change continue (CULTUREVAL_ON_CHANGE=continue) to take both, which marks the results as mixed."
OF_MODELS = (
    f"{_KEPT} Serve the first one again and repeat the command to go on; repeat it as it is for a run of the other "
    f"one; {_BOTH}"
)
_AT_ALL = (
    "Serve the first one again at all addresses, or leave those of another one out of base_url, and repeat the command."
)
OF_SEVERAL = f"{_KEPT} {_AT_ALL}"
OF_UNSTEADY = (
    " If it is one model whose greedy answers differ from time to time, set `identify: model` in its file: its answer "
    "to a short question and its fingerprint are then not compared, so that other weights under the same name may go "
    "unnoticed."
)
OF_PROVIDERS = (
    f"{_KEPT} Name the version that you want as the model, for a run of its own, since the same command goes on only "
    f"once the provider's name leads to the first one again; {_BOTH}"
)
_OF_JUDGE = "Answers that are surely the first model's are kept as its own, and none of the other one is used."
OF_JUDGES = f"{_OF_JUDGE} Serve the first one again, or give the judge another name, and repeat the command."
OF_JUDGES_AT_SEVERAL = f"{_OF_JUDGE} {_AT_ALL}"


@dataclass
class IdentityWatch:
    """Who gives the answers of a run.

    Attributes:
        first: The model of the run.
        question: How a server is asked who it is; None: it is not asked, as providers are not.
        goes_on: Whether answers of other models are taken, and counted (`--on-change continue`).
        advice: What to do where it does not go on, as sentences; "": what fits the change.
        journal: Where the answers are filed.
        others: Key of an answer of this run that another model gave, or either -> that model, as text.
    """

    first: ServerIdentity
    question: IdentityQuestion | None
    goes_on: bool = False
    advice: str = ""
    journal: Journal | None = None
    others: dict[str, str] = field(default_factory=dict)
    _name: str | None = None
    _unlisted: dict[str, str] = field(default_factory=dict)  # url -> why its list of models has failed since
    _recent: dict[str, list[Filed]] = field(default_factory=dict)  # url -> since it last said who it is
    _unplaced: list[Filed] = field(default_factory=list)  # of the run's model, or of another behind its address
    _next_check: dict[str, str] = field(default_factory=dict)  # url -> name
    _changes: Counter[str] = field(default_factory=Counter)
    _now: dict[str, ServerIdentity] = field(default_factory=dict)
    _named: dict[tuple[str | None, str | None], ServerIdentity] = field(default_factory=dict)
    _asked: dict[str, tuple[float, float]] = field(default_factory=dict)  # url -> when, and how long it took

    def __post_init__(self) -> None:
        if self.question is not None:
            self._name = self.first.served or self.first.id

    @property
    def times_changed(self) -> int:
        """How often a server that was asked who it is was found to have changed."""
        return sum(self._changes.values())

    def is_own(self, answer: Mapping[str, Any]) -> bool:
        """Whether an answer of the journal is of the run's model, as far as it says whose it is."""
        return None in (answer.get("model"), self._name) or answer["model"] == self._name

    def takes(self, key: str, answer: Mapping[str, Any]) -> bool:
        """Whether an answer of the journal is taken: one of the run's model, or of any where nobody can be asked."""
        if self.is_own(answer):
            return True
        if self.goes_on and self.question is None:
            self.others[key] = str(replace(self.first, served=answer["model"]))
            return True
        return False

    def expect(self, answers: Sequence[Mapping[str, Any]]) -> None:
        """Learns the name of a model that was not asked for it, from the answers of earlier runs."""
        names = Counter(answer["model"] for answer in answers if answer.get("model"))
        if self._name is None and names:
            self._name = names.most_common(1)[0][0]

    def is_due(self, url: str) -> bool:
        """Whether a server is to be asked again who it is, since some time has gone by."""
        if self.question is None:
            return False
        asked, took = self._asked.setdefault(url, (time.monotonic(), 0.0))
        return time.monotonic() - asked > max(LEAST_PAUSE_S, took / SHARE)

    async def make_sure(self, url: str, in_flight: Callable[[], int], times: int = 1, patient: bool = True) -> None:
        """Asks a server who it is: the answers before are then its model's, or nobody's, or it has changed.

        An answer to the short question that is another one may be rounded differently, in a batch with others: it is
        asked again alone, and no answer then outweighs another. Where the question is refused, or the list of models
        fails, nothing is learned.

        Args:
            url: The server.
            in_flight: How many requests of the run it is answering.
            times: How often it is asked, since not every reply of an address need be of one model.
            patient: Whether it is tried as often as with a request; else once.

        Raises:
            ModelChanged: It is another one, and the run does not go on.
            ServerError: It does not answer.
        """
        if self.question is None:
            return
        recent, started, busy = self._recent.get(url, []), time.monotonic(), in_flight() > 0
        before = list(recent)
        self._next_check.pop(url, None)  # what is filed meanwhile waits for another check
        found = [await self._ask(url, patient) for _ in range(times)]
        self._asked[url] = (time.monotonic(), time.monotonic() - started)
        if self._current(url) is self.first:
            for one in found:
                self.first.learn(one)
        if any(self._differing(url, one) == {"probe"} for one in found):
            while in_flight():
                await asyncio.sleep(_POLL_S)
            alone = [await self._ask(url, patient) for _ in range(ALONE)]
            found = alone if busy else [*found, *alone]
        others = [one for one in found if self._differing(url, one)]
        described = [one for one in others if self._differing(url, one) != {"probe"}]
        if described or len(others) == len(found):
            await self._change(url, (described or others)[0])
        elif others:
            self._unplaced += before
            del recent[: len(before)]
        elif less := [one for one in found if one.says_less_than(self._current(url).whole)]:
            self._unlisted[url] = next((one.unlisted for one in less if one.unlisted), "")
        else:
            self._unlisted.pop(url, None)
            await self._confirm(before)
            del recent[: len(before)]

    async def _ask(self, url: str, patient: bool = True) -> ServerIdentity:
        return await self.question.ask(url, patient, self._current(url).whole.of_a_list)

    def _differing(self, url: str, found: ServerIdentity) -> set[str]:
        """In what an identity differs from that of a server."""
        return self._current(url).whole.differing(found)

    async def _confirm(self, filed: Iterable[Filed]) -> None:
        """Notes in the journal that the checks of these answers were passed."""
        if (checks := {one.check for one in filed}) and self.journal is not None:
            await asyncio.to_thread(self.journal.confirm, checks)

    def leave_unconfirmed(self) -> int:
        """Marks the answers that no check has followed, says how many they are, and returns it; called at the end."""
        left = {one.asked for recent in self._recent.values() for one in recent}
        causes = [self._unlisted[url] for url, recent in self._recent.items() if recent and self._unlisted.get(url)]
        self.others |= dict.fromkeys(left, f"{self.first}{UNCONFIRMED}")
        unplaced = {one.asked for one in self._unplaced}
        self.others |= dict.fromkeys(unplaced, f"{self.first} or another")
        self._recent.clear()
        self._unplaced.clear()
        self._next_check.clear()
        twice = "came while their server answered a short question as it did before and also otherwise"
        fails = f", whose list of models fails ({causes[0].rstrip('.')})" if causes else ""
        for count, why, more in (
            (len(left), f"came after the last time that their server said who it is{fails}", ""),
            (len(unplaced), twice, OF_UNSTEADY),
        ):
            if count:
                logger.warning(
                    "%s of the run's answers %s: nobody knows whether its model gave them, and the same command asks "
                    "for them anew.%s",
                    f"{count:,}",
                    why,
                    more,
                )
        return len(left | unplaced)

    async def _change(self, url: str, found: ServerIdentity) -> None:
        """Takes the answers out of the journal that may be of the model that a server has changed to.

        Raises:
            ModelChanged: The run does not go on.
        """
        current, recent = self._current(url), self._recent.pop(url, [])
        before = current.whole
        self._next_check.pop(url, None)
        unsure = [one for one in recent if not (one.named and _told_apart(before, found))]
        if self.journal is not None:
            self.journal.withdraw({one.key: None for one in unsure})
        await self._confirm(one for one in recent if one not in unsure)
        self.others |= {one.asked: f"{before} or {found}" for one in unsure}
        self._now[url] = found if self.first.whole.differing(found) else self.first
        self._changes[url] += 1
        if not self.goes_on:
            raise self.error(url, found, len(unsure))
        logger.warning("%s", self._told(url, current, found, len(unsure)))

    async def took(self, url: str, response: Any) -> None:
        """Notes whose reply it is, by what it says and by what its server said.

        Raises:
            ServerError: It is of another model, and its server does not say which.
        """
        model, fingerprint = (name_of(getattr(response, name, None)) for name in ("model", "system_fingerprint"))
        fingerprint = fingerprint if self.question is not None and self.question.by_answer else None
        self._name = self._name or model
        who = self._who(url, model, fingerprint)
        if who is None:
            current, found = self._current(url), await self._learned(url, model, fingerprint)
            if (model, fingerprint) not in self._named:  # nor has another reply told it meanwhile
                logger.warning("%s", self._told(url, current, found, 0))
            who = self._named.setdefault((model, fingerprint), found)
        if who is self.first:
            self._now.pop(url, None)
        if (replies := REPLIES.get()) is not None:
            replies.append(Reply(url, model, who, self._changes[url]))

    def _who(self, url: str, model: str | None, fingerprint: str | None) -> ServerIdentity | None:
        """The model of a reply; None for one that nobody has seen."""
        for one in (self._current(url), self.first):
            name = self._name if one is self.first else one.served or one.id
            if model in (None, name) and (None in (fingerprint, one.fingerprint) or fingerprint == one.fingerprint):
                return one
        return self._named.get((model, fingerprint))

    async def _learned(self, url: str, model: str | None, fingerprint: str | None) -> ServerIdentity:
        """The identity of a model that a reply names: what its server says, if that is of the same model."""
        said = ServerIdentity(self.first.id, fingerprint=fingerprint, served=model)
        if self.question is None:
            return replace(said, root=self.first.root)
        found = await self._ask(url)
        if model not in (None, found.served or found.id) or fingerprint not in (None, found.fingerprint):
            return said
        self._now[url] = found
        return found

    def _current(self, url: str) -> ServerIdentity:
        return self._now.get(url, self.first)

    def files(self, key: str, asked: str, replies: Sequence[Reply]) -> list[str]:
        """Notes, before an answer is filed, that it will be; the names of the checks that are to confirm it."""
        if self.question is None:
            return []
        named, checks = all(reply.model is not None for reply in replies), []
        for url in dict.fromkeys(reply.url for reply in replies):
            checks.append(self._next_check.setdefault(url, secrets.token_hex(8)))
            self._recent.setdefault(url, []).append(Filed(key, asked, named, checks[-1]))
        return checks

    def other_of(self, replies: Sequence[Reply]) -> Reply | None:
        """The first reply of another model than the run's; None where all are its own."""
        return next((reply for reply in replies if reply.who is not self.first), None)

    def is_unsure(self, replies: Sequence[Reply]) -> bool:
        """Whether a server has changed since it gave one of these replies."""
        return any(reply.changes != self._changes[reply.url] for reply in replies)

    def error(self, url: str, who: ServerIdentity, unsure: int) -> "ModelChanged":
        """The error that ends a run whose model has changed to `who`; `unsure` answers are of either."""
        return ModelChanged(f"{self._told(url, self.first, who, unsure)} {self.advice or self._fitting(who)}")

    def _fitting(self, who: ServerIdentity) -> str:
        """What to do after a change to `who`."""
        if self.question is None:
            return OF_PROVIDERS
        several = len(self.question.settings.base_urls) > 1
        first = self.first.known
        if who.probe is None:  # of a reply alone, which says less, and names its model also where that is the id
            first = {name: value for name, value in first.items() if name in who.known} | {"served": self._name}
            who = replace(who, served=who.served or self._name)
        names = {name for name, _ in first.items() ^ who.known.items()}
        unsteady = self.question.by_answer and names <= {"probe", "fingerprint"}
        return (OF_SEVERAL if several else OF_MODELS) + (OF_UNSTEADY if unsteady else "")

    def _told(self, url: str, was: ServerIdentity, who: ServerIdentity, unsure: int) -> str:
        before = was.whole
        if was is self.first and self._name not in (None, was.id):
            before = replace(before, served=self._name)
        either = (
            f" Of either may be {counted(unsure, 'answer')} since it was last asked: out of the journal, so that the "
            "next run asks anew."
        )
        told = f"{url} has changed its model during the run: it was {before}, and is {who}."
        return told + (either if unsure else "")


def _told_apart(one: ServerIdentity, other: ServerIdentity) -> bool:
    """Whether the replies of two models say which of them gave it."""
    builds = (one.fingerprint, other.fingerprint)
    return one.served != other.served or (None not in builds and builds[0] != builds[1])
