"""Gathers what a report says, in one pass over the rows and, in a run, over the evidence beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from stepdown.builder.artifacts.names import EVIDENCE, SPEND
from stepdown.builder.artifacts.reading import read_document, read_json_lines
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Message, assistant_message
from stepdown.builder.run.folder import open_for_reading
from stepdown.builder.run.ledger import Ledger
from stepdown.builder.run.reading import is_run
from stepdown.harnesses.registry import facts_of
from stepdown.reports.facts import Evidence, Facts, Savings, TrajectoryCost
from stepdown.reports.judged import count_judged
from stepdown.reports.roles import Role, role_of
from stepdown.scoring.accounting import Prices, Steps
from stepdown.scoring.bank import open_bank
from stepdown.scoring.rates import Rate, read_rates
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
    rates = _read_rates(facts, card)
    with ExitStack() as stack:
        ledger = stack.enter_context(open_for_reading(folder))[0] if of_a_run else None
        found: Iterator[ScoredTrajectory] = read_trajectories(bank, tokens)
        if of_a_run and (bank.folder / EVIDENCE).is_file():
            facts.evidence = Evidence()
            found = _count_evidence_beside(found, bank.folder / EVIDENCE, facts)
        batch: list[tuple[ScoredTrajectory, tuple[Role | None, ...]]] = []
        for one in found:
            roles = tuple(_read_roles(one, ledger))
            _count(facts, one, roles)
            if rates is not None:
                batch.append((one, roles))
                if len(batch) == BATCH:
                    _price(facts, batch, rates)
                    batch = []
        if rates is not None:
            _price(facts, batch, rates)
    if of_a_run and (folder / SPEND).is_file():
        spend = read_document(folder / SPEND)
        facts.spend = spend if isinstance(spend, dict) else None
    return facts


def _read_rates(facts: Facts, card: Path | None) -> Sequence[Rate] | None:
    """The rates of the bank's tiers. The default card may lack a pool's own tiers: then no savings can be told."""
    if card is not None:
        return read_rates(facts.tiers, card)
    try:
        return read_rates(facts.tiers)
    except BadInput as error:
        facts.no_savings = str(error)
        return None


def _read_roles(one: ScoredTrajectory, ledger: Ledger | None) -> Iterator[Role | None]:
    workload = facts_of(one.benchmark)
    for step in one.steps[:-1]:
        yield None if step.response is None else role_of(step.response, workload)
    last = None if ledger is None else _read_last_response(one, ledger)
    yield None if last is None else role_of(last, workload)


def _read_last_response(one: ScoredTrajectory, ledger: Ledger) -> Message | None:
    """The answer to the last step, which no prefix shows; a run's ledger has it."""
    try:
        record = ledger.instance(one.benchmark, one.instance_id)
    except KeyError:
        return None
    if record.final is None:
        return None
    response = ledger.trajectories.candidate_response(record.final, len(record.locks))
    return None if response is None else assistant_message(response)


def _count(facts: Facts, one: ScoredTrajectory, roles: Sequence[Role | None]) -> None:
    tiers = len(facts.tiers)
    facts.instances[one.benchmark] += 1
    facts.rows += len(one.steps)
    for index, (step, role) in enumerate(zip(one.steps, roles, strict=True), 1):
        facts.labels.setdefault(one.benchmark, [0] * tiers)[step.label] += 1
        facts.roles.setdefault(role, [0] * tiers)[step.label] += 1
        if len(one.steps) > 1:
            facts.positions.setdefault(index, [0] * tiers)[step.label] += 1


def _price(
    facts: Facts, batch: Sequence[tuple[ScoredTrajectory, tuple[Role | None, ...]]], rates: Sequence[Rate]
) -> None:
    if not batch:
        return
    savings = facts.savings = facts.savings or Savings()
    steps = Steps.of([one for one, _ in batch])
    labels = np.array([step.label for one, _ in batch for step in one.steps], dtype=np.int64)
    prices = Prices(steps, rates)
    strong, label = prices.of(np.full_like(labels, facts.bank.strong)).tolist(), prices.of(labels).tolist()
    place = 0
    for one, roles in batch:
        here = slice(place, place + len(one.steps))
        place = here.stop
        saved = TrajectoryCost(one, tuple(strong[here]), tuple(label[here]), _cache_reads(one), roles)
        savings.strong_usd[one.benchmark] += sum(saved.strong_usd)
        savings.label_usd[one.benchmark] += sum(saved.label_usd)
        savings.shares[one.benchmark].append(saved.share)
        _keep(savings, saved)


def _cache_reads(one: ScoredTrajectory) -> tuple[int, ...]:
    """Tokens that each step reads where its tier is that of the step before."""
    labels = [step.label for step in one.steps]
    return tuple(
        step.shared if index and labels[index - 1] == step.label else 0 for index, step in enumerate(one.steps)
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
