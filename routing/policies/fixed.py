"""Policies that need no labels: a tier for everything, chance, rules on what a prefix looks like, and given tiers."""

from __future__ import annotations

from collections.abc import Mapping

from stepdown.builder.digests import digest, exact_digest
from stepdown.builder.errors import BadInput
from stepdown.routing.policies.contract import Choice, View
from stepdown.routing.policies.features import figures


class Always:
    """One tier for every call."""

    version = "1"

    def __init__(self, tier: str) -> None:
        self.name, self._tier = f"always:{tier}", tier

    def choose(self, view: View) -> Choice:
        if self._tier not in view.tiers:
            raise BadInput(f"there is no tier {self._tier!r}; there are {', '.join(view.tiers)}")
        return Choice(self._tier)


class Chance:
    """A tier by lot, each as likely as the others. The lot is drawn by the prefix and a seed: the same call, the same
    tier."""

    version = "1"

    def __init__(self, seed: int = 0) -> None:
        self.name, self._seed = f"chance:{seed}" if seed else "chance", seed

    def choose(self, view: View) -> Choice:
        drawn = digest([self._seed, view.instance, view.step, exact_digest(list(view.messages))])
        return Choice(view.tiers[int(drawn[:12], 16) % len(view.tiers)])


class Rules:
    """Rules of thumb on the figures of a prefix; made from no labels and tuned to none.

    Code in hand after trouble: the strong tier. Code, trouble, or a long prefix: one below it. A first call with many
    tools or a long task: the tier above the cheapest. Else the cheapest.
    """

    name, version = "rules", "1"
    _LONG = 10.4
    """Logarithm of about 33,000 characters."""

    def choose(self, view: View) -> Choice:
        names = ("latest_has_code", "task_has_code", "latest_has_trouble", "prefix_characters", "tools")
        code, task_code, trouble, characters, tools = figures(view, names)
        strong = len(view.tiers) - 1
        if trouble and (code or task_code):
            return Choice(view.tiers[strong], reason="code, and trouble with it")
        if code or task_code or trouble or characters > self._LONG:
            return Choice(view.tiers[max(strong - 1, 0)], reason="code, trouble or a long prefix")
        if view.step == 1 and tools > 3:
            return Choice(view.tiers[min(1, strong)], reason="a first call with many tools")
        return Choice(view.tiers[0], reason="nothing speaks against it")


class GivenTiers:
    """Tiers given by row id, `benchmark/instance_id/step`: labels, as an upper envelope, or recorded choices."""

    def __init__(self, name: str, tiers: Mapping[str, str]) -> None:
        self.name, self._tiers = name, dict(tiers)
        self.version = digest(sorted(self._tiers.items()))[:16]

    def choose(self, view: View) -> Choice:
        """The given tier, and the strong one for a call that none is given for: a live run may take more steps."""
        tier = self._tiers.get(f"{view.instance}/{view.step}")
        if tier is None:
            return Choice(view.tiers[-1], reason="no tier is given for this call")
        return Choice(tier)
