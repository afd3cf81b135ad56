"""A fixed clock: tasks that speak of today mean the same day in every episode.

`faketime` (Debian's package of that name) starts the program with a library that tells it another time. It must be on
the path: on this machine, or in the image. A program that is linked statically does not notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator

_FORM = "%Y-%m-%d %H:%M:%S"


def _moment(value: Any) -> Any:
    """A moment as `faketime` reads it. YAML makes a datetime of one that stands without quotes, which JSON has not."""
    if not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value).strftime(_FORM)
    except ValueError:
        raise ValueError("must be a date and a time, such as '2026-01-15 09:00:00'") from None


Moment = Annotated[str, BeforeValidator(_moment)]
"""A date and a time, in UTC."""


def clocked(moment: str | None, command: Sequence[str]) -> list[str]:
    """The command, so that it begins at this moment. Its clock goes on from there, and waiting takes what it takes.

    >>> clocked("2026-01-15 09:00:00", ["date"])
    ['faketime', '-m', '-f', '@2026-01-15 09:00:00', 'date']
    """
    return [*command] if moment is None else ["faketime", "-m", "-f", f"@{moment}", *command]
