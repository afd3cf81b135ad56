"""The notebook of the docs, executed as Jupyter does it.

python -m tests.notebook      # writes its outputs anew into the file
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def executed(folder: Path) -> dict[str, Any]:
    """What the file holds, with the outputs that its cells have in a kernel that works in this folder.

    Of an output only its text is kept, and no count of executions: the file changes only where something is said anew.
    """
    import nbformat
    from nbclient import NotebookClient

    stored = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".install"), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment)
    for cell, ran in zip(stored["cells"], notebook["cells"], strict=True):
        if cell["cell_type"] == "code":
            cell["outputs"] = [_text(output) for output in ran["outputs"]]
    return dict(stored)


def _text(output: dict[str, Any]) -> dict[str, Any]:
    """An output of text alone, as a notebook stores it."""
    kind = output["output_type"]
    if kind == "stream":
        return {"name": output["name"], "output_type": kind, "text": _lines(output["text"])}
    text = {"text/plain": _lines(output["data"]["text/plain"])}
    return {"data": text, "execution_count": None, "metadata": {}, "output_type": kind}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps(executed(Path(folder)), indent=1, ensure_ascii=False)
    NOTEBOOK.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
