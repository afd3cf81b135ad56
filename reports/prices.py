"""What a report prices steps with: a run by its own pool's prices and recorded usage, a release by rates of tiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stepdown.builder.config.price import Price
from stepdown.builder.records import Response, assistant_message, exact_json
from stepdown.builder.run.ledger import InstanceRecord, Ledger
from stepdown.scoring.rates import PAPER, Rate, read_rates
from stepdown.scoring.steps import ScoredTrajectory
from stepdown.scoring.tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class PriceList:
    """Rates by index, and how a step's index is found: by the model that it fell to, or by its label's tier alone."""

    rates: tuple[Rate, ...]
    words: str
    """Whose rates they are."""
    cascades: tuple[tuple[str, ...], ...] = ()
    """A run's models by tier. Empty: rates are by tier."""

    def of_labels(self, one: ScoredTrajectory, record: InstanceRecord | None) -> list[int]:
        """The index of each step's rate, where it is made by its lock, or the first model of a tier that an audit
        lowered it to.
        """
        labels = [step.label for step in one.steps]
        if not self.cascades or record is None:
            return labels
        return [
            self._index(lock.model if lock.tier == label else self.cascades[label][0])
            for label, lock in zip(labels, record.locks, strict=True)
        ]

    def of_strong(self, one: ScoredTrajectory, strong_model: str | None) -> list[int]:
        """The same where the strong model of the instance makes every step."""
        if not self.cascades:
            return [len(self.rates) - 1] * len(one.steps)
        return [self._index(strong_model or self.cascades[-1][0])] * len(one.steps)

    def _index(self, model: str) -> int:
        return [name for cascade in self.cascades for name in cascade].index(model)


def read_price_list(tiers: Sequence[str], card: Path | None, ledger: Ledger | None) -> PriceList:
    """The card that was named, else the prices of a run's own pool, else the paper's rates.

    Raises BadInput: rates are missing for one of the tiers.
    """
    if card is not None:
        return PriceList(read_rates(tiers, card), f"those of {card.name}, by tier")
    if ledger is None:
        why = "a release holds no prices"
    else:
        cascades = _cascades(ledger)
        prices = ledger.meta.run.prices
        rates = {name: _rate(prices[name]) for cascade in cascades for name in cascade}
        free = [name for name in cascades[-1] if not rates[name].cache_write or not rates[name].output]
        if not free:
            words = "list prices of the run's own pool, a step's by the model that it is locked with"
            return PriceList(tuple(rates.values()), words, cascades)
        why = f"the run's pool has no price for its strong model {free[0]!r}"
    return PriceList(read_rates(tiers), f"the paper's, by tier ({PAPER.name}): {why}")


def _cascades(ledger: Ledger) -> tuple[tuple[str, ...], ...]:
    tiers = ledger.meta.run.protocol["pool"]["tiers"]
    return tuple(tuple(model["name"] for model in tier["models"]) for tier in tiers)


def _rate(price: Price) -> Rate:
    """A list price as a rate of the accounting; cache traffic without a price pays for a plain prompt."""
    return Rate(
        input=price.input,
        cache_read=price.input if price.cache_read is None else price.cache_read,
        cache_write=price.input if price.cache_write is None else price.cache_write,
        output=price.output,
    )


@dataclass(frozen=True, slots=True)
class RecordedInstance:
    """What a run's ledger has of a labelled instance, beside its rows."""

    record: InstanceRecord
    strong_model: str
    """That made its seed."""
    responses: tuple[Response, ...]

    def with_recorded_sizes(self, one: ScoredTrajectory, tokens: Tokenizer) -> ScoredTrajectory:
        """The trajectory with the tokens that providers counted; where they did not, those of the recorded answers."""
        steps, earlier = [], 0
        for step, response in zip(one.steps, self.responses, strict=True):
            usage = response.usage
            prompt = usage.prompt or step.prompt
            output = usage.completion or tokens(exact_json(assistant_message(response)))
            steps.append(
                replace(step, prompt=prompt, shared=min(earlier, prompt) if step.shared else 0, output=float(output))
            )
            earlier = prompt
        return replace(one, steps=tuple(steps))


def read_recorded(one: ScoredTrajectory, ledger: Ledger) -> RecordedInstance | None:
    """What the ledger has of an instance; None where it has no such trajectory."""
    try:
        record = ledger.instance(one.benchmark, one.instance_id)
    except KeyError:
        return None
    if record.final is None or len(record.locks) != len(one.steps):
        return None
    strong = next(trial.trial.model for trial in ledger.trials(record.id) if trial.id == record.seed)
    responses = ledger.trajectories.responses(record.final)
    return RecordedInstance(record, strong, responses) if len(responses) == len(one.steps) else None


TOKENS_OF_RUN = "tokens are as the providers counted them, else those of the recorded texts"
TOKENS_OF_RELEASE = "tokens are counted from the rows; of an answer that no row shows, the trajectory's mean, else 500"
