"""Finds a policy by what a command was given: a folder, the name of a kind, or `module:Class` of one's own."""

from __future__ import annotations

import importlib
from pathlib import Path

from stepdown.builder.common.faults import said
from stepdown.builder.common.text import nearest
from stepdown.builder.errors import BadInput, StepdownError
from stepdown.routing.policies.contract import Policy
from stepdown.routing.policies.fixed import Always, Chance, Rules
from stepdown.routing.policies.select import Selecting

NAMES = ("always:TIER", "chance", "rules")
"""Policies that need no folder."""


def load_policy(named: str) -> Policy:
    """The policy that `named` means; `module:Class` runs that module's code. Raises BadInput."""
    kind, _, rest = named.partition(":")
    if Path(named).is_dir():
        from stepdown.routing.policies.trained import load_trained

        return load_trained(Path(named))
    if kind == "always" and rest:
        return Always(rest)
    if kind == "chance" and (not rest or rest.isdecimal()):
        return Chance(int(rest or 0))
    if named == "rules":
        return Rules()
    meant = nearest(kind, [name.partition(":")[0] for name in NAMES])
    if rest and not meant and all(part.isidentifier() for part in kind.split(".")):
        return _own(named, kind, rest)
    hint = f": did you mean {meant!r}?" if meant else ""
    raise BadInput(f"no such policy{hint} A policy is a folder, {', '.join(NAMES)}, or module:Class", file=named)


def _own(named: str, module: str, attribute: str) -> Policy:
    try:
        made = getattr(importlib.import_module(module), attribute)()
    except StepdownError:
        raise
    except (Exception, SystemExit) as error:  # whatever code of anybody's raises
        raise BadInput(f"policy {named!r} can not be made: {said(error)}") from None
    if not hasattr(made, "choose") and callable(getattr(made, "select", None)):
        return Selecting(made, attribute)
    for part in ("name", "version"):
        if not isinstance(getattr(made, part, None), str):
            raise BadInput(f"policy {named!r} has no `{part}`, a text")
    if not callable(getattr(made, "choose", None)):
        raise BadInput(f"policy {named!r} has no `choose`")
    policy: Policy = made
    return policy
