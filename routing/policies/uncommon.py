"""`uncommon-route`, the paper's rule-based baseline, with the paper's settings: its metadata signal alone.

Its other signal reads a set of seeds through an encoder that its package does not bring (paper, section 5.3: "without
its seed set only the metadata signal works"); that signal abstains here. So its rules need the package and nothing
that the package declares.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from stepdown.builder.common.extras import require_package
from stepdown.builder.errors import BadInput
from stepdown.routing.policies.contract import Choice, View
from stepdown.routing.policies.features import text_of

NAME = "uncommon-route"
RISK_TOLERANCE = 0.5
WEIGHTS = (0.55, 0.45)
"""Of its metadata and of its embedding signal."""
_TIERS = 4
"""That it knows of."""


class UncommonRoute:
    """Its four tiers are the pool's, cheapest first. Of fewer, the last stands for all that it has above."""

    name = NAME

    def __init__(self) -> None:
        """Raises BadInput where the package is not installed, or is another one than these rules were read in."""
        require_package("uncommon_route", f"pip install --no-deps {NAME}")
        try:
            from uncommon_route.decision.ensemble import Ensemble
            from uncommon_route.signals.base import TierVote
            from uncommon_route.signals.metadata import MetadataSignal
        except ImportError as error:
            raise BadInput(f"{NAME} {version(NAME)} can not be used: {error}") from None
        self.version = version(NAME)
        self._signal, self._silent = MetadataSignal(), TierVote(None, 0.0)
        self._ensemble = Ensemble(list(WEIGHTS), RISK_TOLERANCE)

    def choose(self, view: View) -> Choice:
        if len(view.tiers) > _TIERS:
            raise BadInput(f"{NAME} knows {_TIERS} tiers; there are {len(view.tiers)}")
        shown: list[dict[str, Any]] = [{**message, "content": text_of(message)} for message in view.messages]
        found = self._ensemble.decide([self._signal.predict({"messages": shown}), self._silent])
        tier = view.tiers[min(found.tier_id, len(view.tiers) - 1)]
        return Choice(tier, reason=f"{found.method}: {found.confidence:.2f}")
