"""Policies that a command was given, scored on the same rows, with progress and what they cost themselves."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from stepdown.builder.cli import console
from stepdown.builder.common.text import printable
from stepdown.routing.policies.asking import Asking
from stepdown.routing.policies.contract import Policy
from stepdown.routing.policies.loading import load_policy
from stepdown.routing.scores.comparing import PolicyScore, score_policies
from stepdown.routing.scores.in_sample import NAME, NearestInSample
from stepdown.scoring.bank import Bank
from stepdown.scoring.score import ScoreSettings


def scored(bank: Bank, named: Sequence[str], settings: ScoreSettings) -> list[PolicyScore]:
    """Every named policy's score, progress on stderr where that is a terminal. Raises BadInput."""
    for name in named:
        console.name_policy_code(name)
    policies = [_policy(name, bank) for name in named]
    is_watched = sys.stderr.isatty()

    def notify(name: str, done: int) -> None:
        if is_watched:
            click.echo(f"\r{name}: {done} rows\033[K", err=True, nl=False)

    found = score_policies(bank, policies, settings, notify)
    if is_watched:
        click.echo("", err=True)
    for policy in policies:
        if isinstance(policy, Asking):
            click.echo(told_of_asking(policy), err=True)
    return found


def told_of_asking(policy: Asking) -> str:
    """What a router's own calls came to, in a line."""
    asked = policy.asked
    kept = f"{asked.calls - asked.fresh} of them answered before"
    said = f"{policy.name}: {asked.calls} calls of its own, {kept}; list price ${asked.usd:.4f}"
    return printable(f"{said}; malformed answers: {asked.malformed}")


def _policy(name: str, bank: Bank) -> Policy:
    if name == NAME:
        return NearestInSample(bank)
    return load_policy(name)


def as_json(found: Sequence[PolicyScore], part: Any) -> list[dict[str, Any]]:
    """Each policy as JSON; `part` makes the JSON of a score."""
    return [
        {
            "policy": one.name,
            "version": one.version,
            "in_sample": one.name == NAME,
            "score": part(one.score),
            "over_first": {name: asdict(metric) for name, metric in one.over_first.items()},
        }
        for one in found
    ]
