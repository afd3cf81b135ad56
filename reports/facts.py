"""What a report is made of: counts and sums of one bank, gathered in one pass over its rows."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stepdown.harnesses.roles import Role
from stepdown.reports.label_costs import LabelCosts
from stepdown.reports.probes import ProbeFacts
from stepdown.scoring.bank import Bank
from stepdown.scoring.steps import ScoredTrajectory

Tiers = list[int]
"""Rows by index of their label's tier."""


@dataclass(frozen=True, slots=True)
class TrajectoryCost:
    """What one trajectory costs with prompt caching: always the strong tier, and by its labels."""

    trajectory: ScoredTrajectory
    strong_usd: tuple[float, ...]
    label_usd: tuple[float, ...]
    """By step."""
    read: tuple[int, ...]
    """Tokens that each step reads from the cache, routed by label."""
    roles: tuple[Role | None, ...]

    @property
    def share(self) -> float:
        """The part of the strong tier's cost that routing by label saves."""
        return 1 - sum(self.label_usd) / sum(self.strong_usd)


@dataclass(slots=True)
class Savings:
    """Sums by workload, and the share that each trajectory saves."""

    strong_usd: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    label_usd: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    shares: dict[str, array[float]] = field(default_factory=lambda: defaultdict(lambda: array("d")))
    longest: list[TrajectoryCost] = field(default_factory=list)
    """A few, longest first."""
    case: TrajectoryCost | None = None
    """The longest one whose labels are not all alike."""


@dataclass(slots=True)
class LoweredSteps:
    """Steps locked below the strong tier, and how many of these the tier's first model alone would have found."""

    steps: int = 0
    first: int = 0
    last_steps: int = 0
    """Last steps among them: there no later step can have helped or harmed."""
    last_first: int = 0


@dataclass(slots=True)
class JudgedAnswers:
    """What became of answers that a judge was asked about, by workload."""

    answers: int = 0
    failed: int = 0
    flips: int = 0
    """A judge model said `passed`, and the rules made it a failure by what it had observed."""
    split: int = 0
    """Members of the panel came to different verdicts."""
    unusable: int = 0
    """Reports that were refused and asked for again: a quote that is nowhere, a form that can not be read."""
    rules: Counter[str] = field(default_factory=Counter)
    """Answers by the rules that failed them; an answer may fail by several."""


@dataclass(slots=True)
class Evidence:
    """What the trials behind the labels say. A release has none of it: it names models."""

    locks: dict[str, Counter[tuple[int, str]]] = field(default_factory=lambda: defaultdict(Counter))
    """Steps by the tier and model that they fell to, by workload."""
    found: dict[str, LoweredSteps] = field(default_factory=lambda: defaultdict(LoweredSteps))
    ranks: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    """Labels below the strong tier by the place in the cascade, from 1, of the model that was accepted; by tier."""
    verdicts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Trials by verdict, by workload."""
    states: dict[str, dict[tuple[int, str], Counter[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Counter))
    )
    """Trials by the state they came to, by workload and by the tier and model that made their step."""
    audited: int = 0
    """Labels whose basis is an audit, not an execution."""
    judged: dict[str, JudgedAnswers] = field(default_factory=lambda: defaultdict(JudgedAnswers))


@dataclass(slots=True)
class Facts:
    """All that is known of a bank."""

    bank: Bank
    name: str
    is_run: bool
    rows: int = 0
    instances: Counter[str] = field(default_factory=Counter)
    labels: dict[str, Tiers] = field(default_factory=dict)
    positions: dict[int, Tiers] = field(default_factory=dict)
    """By step index, of trajectories with more than one step."""
    roles: dict[Role | None, Tiers] = field(default_factory=dict)
    """None: the step's response is not known."""
    savings: Savings | None = None
    rates: str = ""
    """With which rates and whose count of tokens savings are told, as a sentence."""
    no_savings: str = ""
    """Why there are none."""
    evidence: Evidence | None = None
    spend: Mapping[str, Any] | None = None
    label_costs: LabelCosts | None = None
    """Of a run only."""
    probes: ProbeFacts | None = None
    """Of a run only, whose protocol asks for probes."""

    @property
    def tiers(self) -> tuple[str, ...]:
        return tuple(tier.name for tier in self.bank.tiers)
