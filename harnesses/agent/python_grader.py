"""Calls a grader of the user's in a process of its own: `python -I python_grader.py ORDER`, a JSON file.

It imports nothing of stepdown. The result is the last line that it prints.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path


def main() -> None:
    folder, name, workspace, transcript = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.path.insert(0, folder)
    module, _, function = name.partition(":")
    result = getattr(import_module(module), function)(Path(workspace), json.loads(transcript))
    if not isinstance(result, (bool, int, float, dict)):
        sys.exit(f"{name} must give True or False, a score, or scores by name, not {type(result).__name__}")
    print("\n" + json.dumps({"result": result}, allow_nan=False))


if __name__ == "__main__":
    main()
