"""Which tasks a run takes: user tasks by suite, alone or under the package's attacks, each with the text it injects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from stepdown.builder.common.text import nearest
from stepdown.builder.config.validation import Strict, validated
from stepdown.builder.errors import BadInput
from stepdown.builder.records import Instance
from stepdown.harnesses.agentdojo import upstream
from stepdown.harnesses.selection import Take, taken

BENCHMARK = "agentdojo"
ALONE = "none"
"""In place of an attack: the user's task with nothing injected."""


class Source(Strict):
    """The tasks of a run."""

    version: str = upstream.NEWEST
    """Of the benchmark; a newer one replaces tasks of those before."""
    suites: dict[str, Take] = Field(min_length=1)
    """Per suite the first n user tasks, `all`, or a list of ids."""
    attacks: tuple[str, ...] = Field((ALONE,), min_length=1)
    """The package's attacks by name; `none` is the user's task alone."""
    injection_tasks: Take = "all"
    """What the attacker wants, of each suite: the first n, `all`, or a list of ids."""
    target: str = "local"
    """The model that attacks address by name, whatever model reads them; one that the package knows."""


def select(source: Mapping[str, Any]) -> Iterator[Instance]:
    """The instances that `source` names, in the package's order. Raises BadInput, naming the field, before the first.

    A task holds all that it is: version, suite, user task, attack, the attacker's task and the injected texts.
    """
    wanted = validated(Source, dict(source), field="source")
    there = upstream.suites(wanted.version)
    for name in wanted.suites:
        _check(name, there, f"source.suites.{name}", "suite")
    for number, name in enumerate(wanted.attacks):
        _check(name, (ALONE, *upstream.attacks()), f"source.attacks.{number}", "attack")
        if name in wanted.attacks[:number]:
            raise BadInput("is given twice", field=f"source.attacks.{number}")
    _check(wanted.target, upstream.targets(), "source.target", "model")
    chosen = [
        (
            suite,
            taken(list(suite.user_tasks), wanted.suites[name], f"source.suites.{name}"),
            taken(list(suite.injection_tasks), wanted.injection_tasks, "source.injection_tasks")
            if wanted.attacks != (ALONE,)
            else frozenset(),
        )
        for name, suite in there.items()
        if name in wanted.suites
    ]
    return (
        instance
        for suite, users, injections in chosen
        for attack in wanted.attacks
        for instance in _instances(wanted, suite, attack, users, injections)
    )


def _check(name: str, known: Sequence[str] | Mapping[str, Any], field: str, what: str) -> None:
    if name not in known:
        meant = f"did you mean {near!r}? " if (near := nearest(name, known)) else ""
        raise BadInput(f"no such {what}: {meant}there are {', '.join(sorted(known))}", field=field)


def _instances(
    wanted: Source, suite: upstream.Suite, attack: str, users: frozenset[str], injections: frozenset[str]
) -> Iterator[Instance]:
    """The instances of a suite under one attack."""
    user_tasks = [(name, task) for name, task in suite.user_tasks.items() if name in users]
    about = {"version": wanted.version, "suite": suite.name}
    if attack == ALONE:
        for name, _ in user_tasks:
            yield _instance({**about, "user_task": name, "injections": {}})
        return
    made = upstream.attack(attack, wanted.version, suite, wanted.target)
    attackers = [(name, task) for name, task in suite.injection_tasks.items() if name in injections]
    for name, task in user_tasks:
        # What keeps an agent from its task asks for nothing: it is the same whatever the attacker's task.
        for injection, goal in attackers[:1] if made.is_dos_attack else attackers:
            asks = {} if made.is_dos_attack else {"injection_task": injection}
            parts = {**about, "user_task": name, "attack": attack, **asks, "target": wanted.target}
            try:
                yield _instance({**parts, "injections": made.attack(task, goal)})
            except ValueError:  # the package's word for a task whose agent need not read what others wrote
                yield _instance({**parts, "injections": {}}, "nothing that its agent has to read can be injected")


def _instance(task: Mapping[str, Any], dropped: str | None = None) -> Instance:
    parts = (task["suite"], task["user_task"], task.get("attack"), task.get("injection_task"))
    name = "-".join(part for part in parts if part)
    return Instance(BENCHMARK, name, task, dropped, group=f"{task['suite']}/{task['user_task']}")
