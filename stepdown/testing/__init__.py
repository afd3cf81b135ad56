"""A contract suite that any harness can run on itself: `check_harness` tries all that `Harness` and `Episode` ask.

>>> from stepdown.examples.till import Till
>>> check_harness(Till, source={"bills": [[3, 12, 4]]})

In a test, that one line is the test. What is wrong is said in plain words, all of it at once:

>>> class Forgetful(Till):
...     def open(self, instance, at=None):
...         return super().open(instance)  # as if there were no checkpoint
>>> check_harness(Forgetful, source={"bills": [[3, 12, 4]]})
Traceback (most recent call last):
stepdown.testing.ContractBroken: Forgetful breaks the contract of a harness:
- bill-1: from the checkpoint after step 1 it does not go on as it did before: step 2 has another prefix
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stepdown.harnesses.base import Harness
from stepdown.testing.suite import Answers, Suite

__all__ = ["ContractBroken", "check_harness"]


class ContractBroken(AssertionError):
    """A harness does not keep to its contract: a line for everything that was found."""


def check_harness(
    made: type[Harness],
    *,
    source: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
    answers: Answers | None = None,
    models: Sequence[str] = (),
    most: int = 2,
) -> None:
    """Try a harness on all that the contract asks. Raises ContractBroken, and BadInput as its source or options do.

    `source` and `options` are what a config would hold. `answers` are the scripted answers of an instance, from its
    first step to its end; without them the workload's pseudo-model `reference` gives them, and they must pass. `models`
    are names of further pseudo-models, whose answers are tried as wrong ones. At most so many instances are played,
    each some hundred times.
    """
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(made, dict(source), dict(options or {}), answers, Path(folder), models)
        breaches = list(suite.breaches(most))
    if breaches:
        lines = (str(breach) for breach in breaches)
        raise ContractBroken("\n- ".join([f"{made.__qualname__} breaks the contract of a harness:", *lines]))
