"""Finds a policy by what a command was given: a folder, a file, the name of a kind, or `module:Class` of one's own."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from stepdown.builder.common.faults import said
from stepdown.builder.common.text import nearest
from stepdown.builder.errors import BadInput, StepdownError
from stepdown.harnesses.own_code import find_own, load_own
from stepdown.routing.policies.contract import Choice, Policy, View
from stepdown.routing.policies.fixed import Always, Chance, Rules
from stepdown.routing.policies.select import Selecting
from stepdown.routing.policies.stored import POLICY
from stepdown.routing.policies.uncommon import NAME as UNCOMMON
from stepdown.routing.policies.uncommon import UncommonRoute

NAMES = ("always:TIER", "chance", "rules", UNCOMMON)
"""Policies that need no folder."""
_KINDS = [name.partition(":")[0] for name in NAMES]


def load_policy(named: str | Path, folder: Path | None = None) -> Policy:
    """The policy that `named` means: a policy's folder, the YAML file of a model that is asked, always:TIER, chance,
    rules, uncommon-route, or `module:Class`, whose code is run. Such a module is looked for in `folder` (a config's),
    then where one works, then among what is installed. Raises BadInput.
    """
    text = str(named)
    kind, _, rest = text.partition(":")
    if _is_folder(text):
        from stepdown.routing.policies.trained import load_trained

        return load_trained(Path(text))
    if is_asked(text):
        from stepdown.routing.policies.asking import load_asking

        return load_asking(Path(text))
    if kind == "always" and rest:
        return Always(rest)
    if kind == "chance" and (not rest or (rest.isascii() and rest.isdecimal() and len(rest) < _LONGEST_SEED)):
        return Chance(int(rest or 0))
    if text == "rules":
        return Rules()
    if text == UNCOMMON:
        return UncommonRoute()
    if module := own_module(text):
        return _own(text, module, rest, folder)
    meant = nearest(kind, _KINDS)
    hint = f": did you mean {meant!r}?" if meant else ""
    problem = f"no such policy{hint} A policy is a folder, a YAML file of a model to ask, {', '.join(NAMES)}, or "
    raise BadInput(f"{problem}module:Class", file=text)


_LONGEST_SEED = 20


def own_module(named: str) -> str | None:
    """The module whose code loading this policy would run; None: it is none of anybody's own."""
    kind, _, rest = named.partition(":")
    if not rest or _is_folder(named) or is_asked(named) or kind in _KINDS:
        return None
    if not all(part.isidentifier() for part in kind.split(".")):
        return None
    is_there = find_own(kind, None) is not None or find_spec(kind.partition(".")[0]) is not None
    return kind if is_there or not nearest(kind, _KINDS) else None


def is_asked(named: str) -> bool:
    """Whether the file of a model that is asked is named."""
    return named.endswith((".yaml", ".yml"))


def _is_folder(named: str) -> bool:
    """Whether a policy's folder is named. A folder that only happens to have the name of a kind is none."""
    try:
        return Path(named).is_dir() and (named.partition(":")[0] not in _KINDS or (Path(named) / POLICY).is_file())
    except (OSError, ValueError):  # a name that no file can have
        return False


def _own(named: str, module: str, attribute: str, folder: Path | None) -> Policy:
    try:
        made = getattr(load_own(module, folder), attribute)()
    except StepdownError:
        raise
    except (Exception, SystemExit) as error:  # whatever code of anybody's raises
        raise BadInput(f"policy {named!r} can not be made: {said(error)}") from None
    if not hasattr(made, "choose") and callable(getattr(made, "select", None)):
        return _Guarded(Selecting(made, attribute))
    for part in ("name", "version"):
        if not isinstance(getattr(made, part, None), str):
            raise BadInput(f"policy {named!r} has no `{part}`, a text")
    if not callable(getattr(made, "choose", None)):
        raise BadInput(f"policy {named!r} has no `choose`")
    return _Guarded(made)


class _Guarded:
    """Somebody's own policy: it is shown copies, so that nothing it does to a message reaches a model, and what ends a
    program ends only its choice.
    """

    def __init__(self, made: Policy) -> None:
        self._made, self.name, self.version = made, made.name, made.version

    def choose(self, view: View) -> Choice:
        messages, tools = deepcopy((list(view.messages), list(view.tools)))
        try:
            return self._made.choose(replace(view, messages=messages, tools=tools))
        except SystemExit as error:
            raise BadInput(f"policy {self.name!r} ended its program: {said(error)}") from None
