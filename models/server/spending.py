"""What the answers of a model on a server cost: counted, kept within a budget, or told without asking."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lighteval.tasks.requests import Doc

from cultureval.models.server.chat import in_parts
from cultureval.models.server.settings import ServerModelConfig
from cultureval.runtime import processes
from cultureval.runtime.errors import CulturevalError, DryRun, counted
from cultureval.runtime.journal import Journal, answer_key
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse
from cultureval.runtime.printing import print_note
from cultureval.runtime.question_locks import QuestionLocks
from cultureval.runtime.servers.answers import Answer
from cultureval.runtime.servers.costs import (
    Budget,
    BudgetSpent,
    RequestSize,
    Usage,
    price,
    text_tokens,
)
from cultureval.runtime.servers.journalled_answers import Question
from cultureval.runtime.servers.openai_client import OpenAIClient
from cultureval.runtime.servers.providers import MILLION, read_on
from cultureval.runtime.settings import same_command

SHOWN_GROUPS = 20


class Spending:
    """The costs of one run; an answer that the journal had counts with what it once cost."""

    def __init__(self, config: ServerModelConfig, journal: Journal) -> None:
        """Counts nothing yet.

        Raises:
            CulturevalError: Several processes would share a budget.
        """
        self.budget = Budget(config, config.batch_price)
        self._config, self._journal = config, journal
        self.sizes: dict[str, RequestSize] = {}  # of requests, by the key of the answer
        self._planned: dict[str, Counter[str]] = {}
        self._whose = answer_key(budget_of=config.model, base_url=config.base_url)
        self._alone = False
        if config.budget is not None and processes.process_count() > 1:
            raise CulturevalError("A run with a budget is one process: start it without accelerate launch.")

    def size(self, prompt: str | Sequence[dict[str, Any]], request: Mapping[str, Any]) -> RequestSize:
        """The size of a request, from its text, or chat messages with images in any form, and its other fields."""
        messages = [{"content": prompt}] if isinstance(prompt, str) else prompt
        parts = [part for message in in_parts(messages) for part in message["content"]]
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
        images = sum(part["type"] != "text" for part in parts)
        most = request.get(self._config.max_tokens_name)
        limit = most * (request.get("n") or 1) if most else None
        return RequestSize(text_tokens(text), images, limit, self._config.provided_by is not None)

    def begin(self, keys: Sequence[str]) -> None:
        """Counts what the journal has already; with a budget, one run of a model asks at a time.

        Args:
            keys: Of all answers that the run needs.
        """
        config = self._config
        if config.budget is None or config.dry_run:
            return
        if not self._alone:
            QuestionLocks(self._journal.folder).wait_for(
                self._whose,
                lambda: print_note(f"another run spends a budget on {config.model}; this one waits for its end."),
            )
            self._alone = True
        for key in keys:
            self.pay(key, self._journal.get(key))

    def guarded(self, key: str, question: Question) -> Question:
        """The question, asked only if the budget has room for its longest answer."""
        most = self._most(key)

        async def ask(client: OpenAIClient) -> Answer:
            async with self.budget.reserved(most):
                return await question(client)

        return ask

    async def again(self, key: str) -> None:
        """Waits for room for a question whose reply was of no use; raises BudgetSpent where there is none."""
        await self.budget.again(self._most(key))

    def _most(self, key: str) -> float:
        """What an answer can cost; 0 without a budget."""
        size = self.sizes.get(key)
        if self._config.budget is None or size is None:
            return 0.0
        if size.output is None:
            raise CulturevalError("A budget needs a limit of tokens: set max_new_tokens in generation_parameters.")
        return price(self._config, size.input(self._config.image_tokens), size.output)

    def pay(self, key: str, answer: Answer | None, filed: bool = False) -> Usage:
        """Counts an answer, once, with earlier ones of its question that were withdrawn or are asked for anew.

        Where the server gave no counts, they are estimated by the lengths of prompt and answer.

        Args:
            key: Of the answer in the journal.
            answer: Of the server; None: only the earlier ones.
            filed: Whether the journal had it; if it has been withdrawn since, it is among the earlier ones.

        Returns:
            The tokens of the last of them.
        """
        paid = self._journal.paid(key, None) if filed and key not in self._journal else {}
        paid = paid or self._journal.paid(key, answer)
        return self.budget.pay(paid, self.sizes.get(key, RequestSize()))

    def explain(self, error: BudgetSpent, answered: int, wanted: int) -> CulturevalError:
        """The error that ends a run whose budget is spent."""
        return CulturevalError(
            f"{str(error)[:1].upper()}{str(error)[1:]}: {answered:,} of {wanted:,} answers of {self._config.model} are "
            f"there and kept. {same_command()}, with a larger --budget, goes on from here and pays for none of them "
            "again; --dry-run tells what the rest costs."
        )

    def plan(
        self, docs: Sequence[Doc], asked: Sequence[Mapping[str, Question]], known: Mapping[str, Answer]
    ) -> dict[str, RefusedResponse]:
        """Notes what would be asked, without asking.

        Returns:
            Keys of the answers that are not `known` -> what stands for them.
        """
        missing: dict[str, RefusedResponse] = {}
        for doc, own in zip(docs, asked, strict=True):
            counts = self._planned.setdefault(re.split("[:|]", doc.task_name)[0], Counter())
            for key in own:
                self.pay(key, self._journal.get(key))
                if key in known:
                    counts["known"] += 1
                elif key not in missing:
                    size = self.sizes.get(key, RequestSize(output=0))
                    tokens, most = size.input(self._config.image_tokens), size.output
                    counts.update(requests=1, input=tokens, most=most or 0, unlimited=most is None)
                    missing[key] = RefusedResponse(reason="nothing is asked in a dry run")
        return missing

    def finish(self) -> None:
        """Lets the next run with a budget go on after the last answer; ends a dry run.

        Raises:
            DryRun: It is one.
        """
        if self._alone:
            QuestionLocks(self._journal.folder).give_back(self._whose)
            self._alone = False
        if self._config.dry_run:
            raise DryRun("\n".join(self._told()))

    def _told(self) -> list[str]:
        total: Counter[str] = Counter()
        for counts in self._planned.values():
            total.update(counts)
        groups = sorted(self._planned.items(), key=lambda one: -one[1]["input"])
        lines = [f"{name}: {self._line(counts)}" for name, counts in groups[:SHOWN_GROUPS]] if len(groups) > 1 else []
        more = [f"and {len(groups) - SHOWN_GROUPS} more groups"] if len(groups) > SHOWN_GROUPS else []
        lines += [*more, f"{self._config.model}: {self._line(total)}", *self._money(total)]
        return [*lines, "Nothing was asked."]

    def _line(self, counts: Mapping[str, int]) -> str:
        most = f"at most {counts['most']:,} of answers" if not counts["unlimited"] else "no limit of answers is set"
        return (
            f"{counted(counts['requests'], 'request')} (in the journal: {counted(counts['known'], 'answer')}), about "
            f"{counts['input']:,} tokens of prompts, {most}{self._cost(counts)}"
        )

    def _cost(self, counts: Mapping[str, int], share: float = 1.0) -> str:
        if not self._config.has_prices:
            return ""
        least, most = (share * price(self._config, counts["input"], output) for output in (0, counts["most"]))
        return f"; cost from {least:.4g} (prompts alone) to {most:.4g} (answers as long as they may be)"

    def _money(self, total: Mapping[str, int]) -> list[str]:
        config = self._config
        if not config.has_prices:
            return ["No prices are known: set input_token_price and output_token_price in the model's YAML file."]
        each = [price(config, 1, 0), price(config, 1, 0, cached_tokens=1), price(config, 0, 1)]
        words = " / ".join(f"{MILLION * one:g}" for one in each)
        known = config.provided_by.token_prices(config.model) if config.provided_by else {}
        ours = known and all(getattr(config, name) == value for name, value in known.items())
        lines = [f"Prices of a million tokens (input / cached / output): {words}, {_source(bool(ours))}."]
        if config.batch_price < 1:
            lines.append(f"As a batch (--batch-out): {self._cost(total, config.batch_price).removeprefix('; ')}.")
        if config.budget is not None:
            left = config.budget - self.budget.spent
            fits = "covers" if price(config, total["input"], total["most"]) <= left else "may not cover"
            lines.append(
                f"Spent on answers in the journal: {self.budget.spent:.4g}; the budget of {config.budget:g} "
                f"{fits} the rest."
            )
        return lines


def _source(ours: bool) -> str:
    return f"US dollars, as read on {read_on()}; check them with your provider" if ours else "as you set them"
