"""`--dry-run`: the requests that a run would send to a server, and their cost."""

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence

from lighteval.tasks.requests import Doc

from cultureval.models.server.settings import ServerModelConfig
from cultureval.runtime.errors import DryRun, counted
from cultureval.runtime.servers.costs import RequestSize, price

MILLION = 1e6
SHOWN_GROUPS = 20


class Plan:
    """The requests that a run would send, by group of tasks."""

    def __init__(self, config: ServerModelConfig) -> None:
        self._config = config
        self._groups: dict[str, Counter[str]] = {}
        self._seen: set[str] = set()

    def add(
        self,
        sizes: Mapping[str, RequestSize],
        docs: Sequence[Doc],
        asked: Sequence[Mapping[str, object]],
        known: Container[str],
    ) -> list[str]:
        """Counts the questions of docs; returns the keys of questions without an answer in the journal."""
        missing = []
        for doc, of_doc in zip(docs, asked, strict=True):
            counts = self._groups.setdefault(re.split("[:|]", doc.task_name)[0], Counter())
            for key in of_doc:
                if key in known:
                    counts["known"] += 1
                    continue
                missing.append(key)
                if key not in self._seen:
                    size = sizes.get(key, RequestSize(output=0))
                    tokens = size.input(self._config.image_tokens)
                    counts.update(requests=1, input=tokens, most=size.output or 0, unlimited=size.output is None)
                self._seen.add(key)
        return missing

    def finish(self, spent: float) -> None:
        """Ends the run.

        Args:
            spent: Cost of the answers in the journal.

        Raises:
            DryRun: With the plan as its text.
        """
        total: Counter[str] = Counter()
        for counts in self._groups.values():
            total.update(counts)
        groups = sorted(self._groups.items(), key=lambda group: -group[1]["input"])[:SHOWN_GROUPS]
        lines = [f"{name}: {self._line(counts)}" for name, counts in groups] if len(groups) > 1 else []
        lines += [f"{self._config.model}: {self._line(total)}", *self._money(total, spent), "Nothing was asked."]
        raise DryRun("\n".join(lines))

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
        return f"; cost from {least:.4g} (prompts only) to {most:.4g} (answers of full length)"

    def _money(self, total: Mapping[str, int], spent: float) -> list[str]:
        config = self._config
        if not config.has_prices:
            return ["No prices are known: set input_token_price and output_token_price in the model's YAML file."]
        each = [price(config, 1, 0), price(config, 1, 0, cached_tokens=1), price(config, 0, 1)]
        words = " / ".join(f"{MILLION * value:g}" for value in each)
        lines = [f"Prices of a million tokens (input / cached / output): {words}; check them with your provider."]
        if config.batch_price < 1:
            lines.append(f"As a batch (--batch-out): {self._cost(total, config.batch_price).removeprefix('; ')}.")
        if config.budget is not None:
            lines.append(f"Spent on answers in the journal: {spent:.4g}, of a budget of {config.budget:g}.")
        return lines
