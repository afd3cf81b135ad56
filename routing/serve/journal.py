"""What a router did: a line for each call in a JSONL file, which `stepdown seeds convert` reads, and what was spent."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepdown.builder.common.files import json_line
from stepdown.builder.errors import BadInput


class Journal:
    """Calls and spending. Lines are whole, in the order in which calls ended. Threads may share it."""

    def __init__(self, path: Path | None) -> None:
        """Go on with the file, and with the spending that its lines tell of. Raises BadInput: it can not be written."""
        self._guard = threading.Lock()
        self.usd = 0.0
        self._file = None
        if path is None:
            return
        self.usd = _spent(path)
        try:
            self._file = path.open("ab")
        except OSError as error:
            raise BadInput(error.strerror or str(error), file=path, field="--log") from None

    def write(self, line: Mapping[str, Any], usd: float) -> None:
        """Keep one call, and what it cost."""
        data = json_line(line)
        with self._guard:
            self.usd += usd
            if self._file is not None:
                self._file.write(data)
                self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _spent(path: Path) -> float:
    """What the lines of an earlier process say was spent; a line that a kill has cut is passed over."""
    if not path.is_file():
        return 0.0
    total = 0.0
    with path.open("rb") as file:
        for line in file:
            try:
                usd = json.loads(line).get("usd")
            except (ValueError, RecursionError, AttributeError):
                continue
            total += usd if isinstance(usd, (int, float)) and usd >= 0 else 0.0
    return total
