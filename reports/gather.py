"""Gathers what a report says, in one pass over the rows and, in a run, over the evidence beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from stepdown.builder.artifacts.names import EVIDENCE, PROBES, SPEND
from stepdown.builder.common.reading import read_document, read_json_lines
from stepdown.builder.errors import BadInput
from stepdown.builder.records import OutcomeState, assistant_message
from stepdown.builder.run.folder import open_for_reading
from stepdown.builder.run.ledger import Ledger
from stepdown.builder.run.reading import is_run
from stepdown.harnesses.registry import facts_of
from stepdown.harnesses.roles import Role, role_of
from stepdown.reports.facts import Evidence, Facts, Savings, TrajectoryCost
from stepdown.reports.judged import count_judged
from stepdown.reports.label_costs import read_label_costs
from stepdown.reports.prices import (
    TOKENS_OF_RELEASE,
    TOKENS_OF_RUN,
    PriceList,
    RecordedInstance,
    read_price_list,
    read_recorded,
)
from stepdown.reports.probes import count_probes
from stepdown.scoring.accounting import Prices, Steps
from stepdown.scoring.bank import Bank, open_bank
from stepdown.scoring.steps import ScoredTrajectory, read_trajectories
from stepdown.scoring.tokenizers import Tokenizer

LONGEST = 10
"""Trajectories that are shown one by one."""
BATCH = 256
"""Trajectories that are priced together."""


def gather(folder: Path, tokens: Tokenizer, card: Path | None = None) -> Facts:
    """The facts of a run or a release. Raises BadInput: what its files, or a rate card that was named, have wrong."""
    of_a_run = is_run(folder)
    bank = open_bank(folder)
    facts = Facts(bank, folder.resolve().name, of_a_run)
    with ExitStack() as stack:
        ledger = stack.enter_context(open_for_reading(folder))[0] if of_a_run else None
        prices = _read_prices(facts, card, ledger)
        found: Iterator[ScoredTrajectory] = read_trajectories(bank, tokens)
        if of_a_run and (bank.folder / EVIDENCE).is_file():
            facts.evidence = Evidence()
            found = _count_evidence_beside(found, bank.folder / EVIDENCE, facts)
        batch: list[_Gathered] = []
        for counted in found:
            recorded = read_recorded(counted, ledger) if ledger is not None else None
            one = recorded.with_recorded_sizes(counted, tokens) if recorded is not None else counted
            gathered = _Gathered(one, tuple(_read_roles(one, recorded)), recorded)
            _count(facts, one, gathered.roles)
            if prices is not None:
                batch.append(gathered)
                if len(batch) == BATCH:
                    _price(facts, batch, prices)
                    batch = []
        if prices is not None:
            _price(facts, batch, prices)
        if ledger is not None:
            facts.label_costs = read_label_costs(ledger, bank.strong)
    if of_a_run and (folder / PROBES).is_file():
        facts.probes = count_probes(folder / PROBES, facts.tiers, _count_models(bank))
    if of_a_run and (folder / SPEND).is_file():
        spend = read_document(folder / SPEND)
        facts.spend = spend if isinstance(spend, dict) else None
    return facts


def _count_models(bank: Bank) -> int:
    """How many models a run's pool has."""
    return sum(len(tier["models"]) for tier in bank.manifest["pool"]["tiers"])


@dataclass(frozen=True, slots=True)
class _Gathered:
    """A trajectory on its way to be priced; `recorded` is None in a release."""

    one: ScoredTrajectory
    roles: tuple[Role | None, ...]
    recorded: RecordedInstance | None

    def label_rates(self, prices: PriceList) -> list[int]:
        return prices.of_labels(self.one, self.recorded.record if self.recorded else None)

    def strong_rates(self, prices: PriceList) -> list[int]:
        return prices.of_strong(self.one, self.recorded.strong_model if self.recorded else None)


def _read_prices(facts: Facts, card: Path | None, ledger: Ledger | None) -> PriceList | None:
    """What steps are priced with. The default card may lack a pool's own tiers: then no savings can be told."""
    try:
        prices = read_price_list(facts.tiers, card, ledger)
    except BadInput as error:
        if card is not None:
            raise
        facts.no_savings = str(error)
        return None
    facts.rates = f"Rates: {prices.words}; {TOKENS_OF_RUN if ledger is not None else TOKENS_OF_RELEASE}."
    return prices


def _read_roles(one: ScoredTrajectory, recorded: RecordedInstance | None) -> Iterator[Role | None]:
    """The role of every step. No prefix shows the answer to the last one; a run's ledger has it."""
    workload = facts_of(one.benchmark)
    for step in one.steps[:-1]:
        yield None if step.response is None else role_of(step.response, workload)
    yield None if recorded is None else role_of(assistant_message(recorded.responses[-1]), workload)


def _count(facts: Facts, one: ScoredTrajectory, roles: Sequence[Role | None]) -> None:
    tiers = len(facts.tiers)
    facts.instances[one.benchmark] += 1
    facts.rows += len(one.steps)
    for index, (step, role) in enumerate(zip(one.steps, roles, strict=True), 1):
        facts.labels.setdefault(one.benchmark, [0] * tiers)[step.label] += 1
        facts.roles.setdefault(role, [0] * tiers)[step.label] += 1
        if len(one.steps) > 1:
            facts.positions.setdefault(index, [0] * tiers)[step.label] += 1


def _price(facts: Facts, batch: Sequence[_Gathered], prices: PriceList) -> None:
    if not batch:
        return
    savings = facts.savings = facts.savings or Savings()
    priced = Prices(Steps.of([gathered.one for gathered in batch]), prices.rates)
    label_rates = [gathered.label_rates(prices) for gathered in batch]
    strong_rates = [gathered.strong_rates(prices) for gathered in batch]
    label, strong = (
        priced.of(np.array(list(chain.from_iterable(rates)), dtype=np.int64)).tolist()
        for rates in (label_rates, strong_rates)
    )
    place = 0
    for gathered, rates in zip(batch, label_rates, strict=True):
        one = gathered.one
        here = slice(place, place + len(one.steps))
        place = here.stop
        saved = TrajectoryCost(one, tuple(strong[here]), tuple(label[here]), _cache_reads(one, rates), gathered.roles)
        savings.strong_usd[one.benchmark] += sum(saved.strong_usd)
        savings.label_usd[one.benchmark] += sum(saved.label_usd)
        savings.shares[one.benchmark].append(saved.share)
        _keep(savings, saved)


def _cache_reads(one: ScoredTrajectory, rates: Sequence[int]) -> tuple[int, ...]:
    """Tokens that each step reads where it is made by what made the step before."""
    return tuple(
        step.shared if index and rates[index - 1] == rates[index] else 0 for index, step in enumerate(one.steps)
    )


def _keep(savings: Savings, saved: TrajectoryCost) -> None:
    """Of trajectories of one length the first one met is kept, so that a report is the same at every look."""
    length = len(saved.trajectory.steps)
    if len(savings.longest) < LONGEST or length > len(savings.longest[-1].trajectory.steps):
        savings.longest.append(saved)
        savings.longest.sort(key=lambda other: -len(other.trajectory.steps))
        del savings.longest[LONGEST:]
    mixed = len({step.label for step in saved.trajectory.steps}) > 1
    if mixed and (savings.case is None or length > len(savings.case.trajectory.steps)):
        savings.case = saved


# Evidence


def _count_evidence_beside(found: Iterator[ScoredTrajectory], path: Path, facts: Facts) -> Iterator[ScoredTrajectory]:
    """The trajectories, each counted with its lines of evidence, which stand in the rows' own order."""
    lines = read_json_lines(path)
    for one in found:
        for step in one.steps:
            number, line = next(lines, (None, None))
            if number is None:
                raise BadInput(f"the evidence of {step.id!r} is missing", file=path)
            if not isinstance(line, dict) or line.get("id") != step.id:
                raise BadInput(f"must be the evidence of {step.id!r}", file=path, line=number, field="id")
            try:
                _count_evidence(facts, one, step is one.steps[-1], line)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise BadInput(f"no evidence of a step: {error!r}", file=path, line=number) from None
        yield one


def _count_evidence(facts: Facts, one: ScoredTrajectory, is_last: bool, line: dict[str, Any]) -> None:
    evidence, workload = facts.evidence, one.benchmark
    assert evidence is not None
    lock, trials = line["lock"], line["trials"]
    tier, model = facts.tiers.index(lock["tier"]), str(lock["model"])
    evidence.locks[workload][tier, model] += 1
    evidence.audited += line["basis"] == "audit"
    for trial in trials:
        evidence.verdicts[workload][str(trial["verdict"])] += 1
        if (state := trial.get("state")) is not None:
            made_by = facts.tiers.index(trial["tier"]), str(trial["model"])
            evidence.states[workload][made_by][str(OutcomeState(state))] += 1
        if trial.get("grading") is not None:
            count_judged(evidence.judged[workload], trial["grading"], str(trial["verdict"]))
    if tier == facts.bank.strong:
        return
    cascade = list(dict.fromkeys(str(trial["model"]) for trial in trials if trial["tier"] == lock["tier"]))
    rank = cascade.index(model) + 1
    evidence.ranks[lock["tier"]][rank] += 1
    found = evidence.found[workload]
    found.steps += 1
    found.first += rank == 1
    found.last_steps += is_last
    found.last_first += is_last and rank == 1
