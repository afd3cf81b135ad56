"""What a policy would have chosen for every row of a bank."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from stepdown.builder.artifacts.rows import Row, read_rows
from stepdown.builder.common.faults import said
from stepdown.builder.common.files import whole_text_file
from stepdown.builder.errors import BadInput, StepdownError
from stepdown.routing.policies.asking import Asking
from stepdown.routing.policies.contract import Choice, NoChoice, Policy, Unreachable, View, checked
from stepdown.routing.policies.trained import Trained
from stepdown.routing.training.examples import view_of
from stepdown.scoring.bank import Bank

_BATCH = 256
"""Rows that a trained policy reads together."""
_TOLD = 16
"""Rows after which somebody is told again."""


def write_predictions(
    bank: Bank, policy: Policy, path: Path, split: str | None = None, notify: Callable[[int], None] = lambda done: None
) -> int:
    """Write `{"id", "tier"}` for every row (of a split), as `stepdown score` reads it; how many rows there were.

    A row for which the policy has no answer gets null, which fails it. `notify` is told how many rows are done.
    Raises BadInput where the policy breaks, naming the row, and Unreachable where it asks what can not be asked now.
    """
    done = 0
    tiers = tuple(tier.name for tier in bank.tiers)
    rows = (row for _, row in read_rows(bank.rows) if split is None or row.split == split)
    with whole_text_file(path) as file:
        while batch := list(islice(rows, _BATCH)):
            for row, choice in zip(batch, _choices(policy, batch, tiers), strict=True):
                tier = None if choice is None else choice.tier
                file.write(json.dumps({"id": row.id, "tier": tier}) + "\n")
                done += 1
                if done % _TOLD == 0:
                    notify(done)
    return done


def _choices(policy: Policy, rows: list[Row], tiers: tuple[str, ...]) -> Iterator[Choice | None]:
    views = [view_of(row, tiers) for row in rows]
    if isinstance(policy, (Trained, Asking)):
        yield from policy.choose_all(views)
        return
    for row, view in zip(rows, views, strict=True):
        yield _choice(policy, view, row.id)


def _choice(policy: Policy, view: View, row_id: str) -> Choice | None:
    try:
        return checked(policy.choose(view), view, policy.name)
    except Unreachable:
        raise
    except NoChoice:
        return None
    except StepdownError:
        raise
    except Exception as error:  # whatever code of anybody's raises
        raise BadInput(f"policy {policy.name!r} broke at {row_id}: {said(error)}") from None
