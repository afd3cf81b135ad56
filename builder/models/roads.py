"""The two roads to an endpoint: directly, where it takes the OpenAI form, and by LiteLLM, which knows all others.

The library of a road is imported when a request first takes it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stepdown.builder.models.envelope import RawCompletion
from stepdown.builder.models.families import Family

if TYPE_CHECKING:
    from stepdown.builder.models.direct import Direct


class Roads:
    """What asks endpoints. Threads share one."""

    def __init__(self) -> None:
        self._direct: Direct | None = None
        self._guard = threading.Lock()

    def ask(self, family: Family | None, request: Mapping[str, Any], timeout: float) -> RawCompletion:
        """The answer to a request, which also says where it goes; a model of no family goes by LiteLLM.

        Raises Unusable, CutOff, Rejected, WrongCall, or the road's own error: an HTTP error or a broken connection.
        """
        if family:
            return self._open_direct().ask(family, request, timeout)
        from stepdown.builder.models.provider import ask

        return ask(request, timeout)

    def close(self) -> None:
        """Close the connections that are kept open. No request may be under way."""
        if self._direct:
            self._direct.close()

    def _open_direct(self) -> Direct:
        with self._guard:
            if self._direct is None:
                from stepdown.builder.models.direct import Direct

                self._direct = Direct()
            return self._direct
