"""`--dry-run`: the requests that a run would send to a server, and their cost."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping

from cultureval.models.server.settings import ServerModelConfig
from cultureval.runtime.errors import DryRun, counted
from cultureval.runtime.servers.costs import RequestSize, price

MILLION = 1e6


class Plan:
    """The requests that a run would send."""

    def __init__(self, config: ServerModelConfig) -> None:
        self._config = config
        self._total: Counter[str] = Counter()
        self._seen: set[str] = set()

    def add(self, sizes: Mapping[str, RequestSize], keys: Iterable[str], known: Container[str]) -> list[str]:
        """Counts questions; returns the keys of those without an answer in the journal."""
        missing = []
        for key in keys:
            if key in known:
                self._total["known"] += 1
                continue
            missing.append(key)
            if key not in self._seen:
                size = sizes[key]
                tokens = size.input(self._config.image_tokens)
                self._total.update(requests=1, input=tokens, most=size.output or 0, unlimited=size.output is None)
            self._seen.add(key)
        return missing

    def finish(self, spent: float) -> None:
        """Ends the run by a DryRun with the plan as its text; `spent` is the cost of the journal's answers."""
        lines = [f"{self._config.model}: {self._line()}", *self._money(spent), "Nothing was asked."]
        raise DryRun("\n".join(lines))

    def _line(self) -> str:
        counts = self._total
        most = f"at most {counts['most']:,} of answers" if not counts["unlimited"] else "no limit of answers is set"
        return (
            f"{counted(counts['requests'], 'request')} (in the journal: {counted(counts['known'], 'answer')}), about "
            f"{counts['input']:,} tokens of prompts, {most}{self._cost()}"
        )

    def _cost(self, share: float = 1.0) -> str:
        if not self._config.has_prices:
            return ""
        tokens, longest = self._total["input"], self._total["most"]
        least, most = (share * price(self._config, tokens, output) for output in (0, longest))
        return f"; cost from {least:.4g} (prompts only) to {most:.4g} (answers of full length)"

    def _money(self, spent: float) -> list[str]:
        config = self._config
        if not config.has_prices:
            return ["No prices are known: set input_token_price and output_token_price in the model's YAML file."]
        each = [price(config, 1, 0), price(config, 1, 0, cached_tokens=1), price(config, 0, 1)]
        words = " / ".join(f"{MILLION * value:g}" for value in each)
        lines = [f"Prices of a million tokens (input / cached / output): {words}; check them with your provider."]
        if config.batch_price < 1:
            lines.append(f"As a batch (--batch-out): {self._cost(config.batch_price).removeprefix('; ')}.")
        if config.budget is not None:
            lines.append(f"Spent on answers in the journal: {spent:.4g}, of a budget of {config.budget:g}.")
        return lines
