"""The policies of a live run: those that `load_policy` knows, and the labels of a run as an upper envelope."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stepdown.builder.artifacts.rows import read_rows
from stepdown.builder.config.pool import Pool
from stepdown.builder.errors import BadInput
from stepdown.routing.policies.contract import NoChoice, Policy, View
from stepdown.routing.policies.fixed import GivenTiers
from stepdown.routing.policies.loading import load_policy
from stepdown.scoring.bank import open_bank

LABELS = "labels:"


def live_policies(named: Sequence[str], pool: Pool, folder: Path | None = None) -> list[Policy]:
    """The policies that are named, each asked once whether it knows the pool's tiers. One's own are looked for in
    `folder`, the config's, first. Raises BadInput.
    """
    policies = [_policy(name, folder) for name in named]
    tiers = tuple(tier.name for tier in pool.tiers)
    for policy in policies:
        try:
            policy.choose(View((), tiers=tiers))
        except NoChoice:
            continue
        except BadInput:
            raise
        except Exception:  # noqa: S112 - what it makes of an empty prefix is its own; a real one is told where it breaks
            continue
    return policies


def _policy(name: str, folder: Path | None) -> Policy:
    if not name.startswith(LABELS):
        return load_policy(name, folder)
    bank = open_bank(Path(name.removeprefix(LABELS)))
    return GivenTiers("labels", {row.id: row.target_tier for _, row in read_rows(bank.rows)})
