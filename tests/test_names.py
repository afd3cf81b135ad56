"""A class's name says what it is, so no two public classes of the code share one."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.conftest import ROOT

FOLDERS = ("audit", "builder", "harnesses", "judges", "releases", "reports", "routing", "scoring")


def public_classes() -> dict[str, set[Path]]:
    """Where each public class of a module is made, by its name."""
    made: dict[str, set[Path]] = defaultdict(set)
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    made[node.name].add(path.relative_to(ROOT))
    return made


def is_a_workloads_own(path: Path) -> bool:
    """Whether it lies in the folder of one workload, where another workload's names mean nothing."""
    return path.parts[0] == "harnesses" and len(path.parts) > 2


def test_a_class_has_its_name_for_itself() -> None:
    shared = {name: paths for name, paths in public_classes().items() if len(paths) > 1}
    unclear = {
        name: sorted(map(str, paths))
        for name, paths in shared.items()
        if any(not is_a_workloads_own(path) for path in paths) or len({path.parts[1] for path in paths}) < len(paths)
    }
    assert unclear == {}
