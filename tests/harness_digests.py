"""Digests of what harnesses are made of, beside their versions: `python -m tests.harness_digests` renews the file.

A cached response or verdict is found again by the harness's `VERSION`. So whoever changes a prompt, a grader or
anything else that can change a prefix, an answer or a verdict raises it. Where a change can do none of that, renewing
is enough. Comments, docstrings and layout do not count.
"""

from __future__ import annotations

import ast
import hashlib
import json
from importlib import import_module
from pathlib import Path

from stepdown.harnesses.registry import installed
from tests.conftest import ROOT

FILE = Path(__file__).parent / "harness_digests.json"
PACKAGE = "stepdown.harnesses"
CONTRACT = {f"{PACKAGE}.{name}" for name in ("base", "registry", "spelling")}
"""What no verdict depends on."""


def of_all() -> dict[str, dict[str, str]]:
    """The version and the digest of every workload that comes with stepdown."""
    own = [name for name, places in installed().items() if places[0].startswith(PACKAGE)]
    return {name: {"version": version_of(name), "digest": digest_of(name)} for name in own}


def version_of(name: str) -> str:
    """What its author raises."""
    module = installed()[name][0].partition(":")[0]
    modules = [module, f"{PACKAGE}.{name}.harness"]
    version: str = next(found for one in modules if (found := getattr(import_module(one), "VERSION", None)))
    return version


def digest_of(name: str) -> str:
    """Of all files of its folder and of the harnesses' own modules that they import."""
    files = sorted(file for file in (ROOT / "harnesses" / name).rglob("*") if file.suffix in (".py", ".txt"))
    shared = sorted(shared_by(files))
    meaning = [[str(file.relative_to(ROOT)), meaning_of(file)] for file in [*files, *shared]]
    return hashlib.sha256(json.dumps(meaning).encode()).hexdigest()


def shared_by(files: list[Path]) -> set[Path]:
    """The modules beside the workloads' folders that these files import, and those that they import in turn."""
    found: set[Path] = set()
    waiting = [file for file in files if file.suffix == ".py"]
    while waiting:
        for node in ast.walk(ast.parse(waiting.pop().read_text(encoding="utf-8"))):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            if module is None or module in CONTRACT or not module.startswith(f"{PACKAGE}."):
                continue
            file = ROOT / "harnesses" / f"{module.removeprefix(PACKAGE + '.').replace('.', '/')}.py"
            if file.is_file() and file not in found and file not in files:
                found.add(file)
                waiting.append(file)
    return found


def meaning_of(file: Path) -> object:
    """Code without comments, docstrings and layout; any other text as it is."""
    text = file.read_text(encoding="utf-8")
    return _shape(ast.parse(text)) if file.suffix == ".py" else text


def _shape(part: object) -> object:
    """A syntax tree as JSON, alike in every version of Python: a part that is empty is left out."""
    if isinstance(part, ast.AST):
        fields = {name: _shape(value) for name, value in ast.iter_fields(part)}
        return [type(part).__name__, {name: value for name, value in fields.items() if value not in (None, [])}]
    if isinstance(part, list):
        return [_shape(one) for one in part if not _is_documentation(one)]
    return repr(part) if part is not None else None


def _is_documentation(part: object) -> bool:
    """Whether it is a text that stands alone: a docstring of a module, a class, a function or a field."""
    value = part.value if isinstance(part, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


if __name__ == "__main__":
    FILE.write_text(json.dumps(of_all(), indent=1) + "\n", encoding="utf-8")
