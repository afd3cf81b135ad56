"""Which code a machine has: nodes must have the head's, or one run would be labelled by two measures."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from stepdown.builder.config.validation import changes
from stepdown.builder.errors import BadInput
from stepdown.builder.run.ledger import RunVersions


class CodeVersion(NamedTuple):
    """What is installed on a machine."""

    machine: str
    stepdown: str
    """The version."""
    code: str
    """A digest of the package's files: checkouts may differ under one version."""


@cache
def code_version() -> CodeVersion:
    """What is installed here."""
    try:
        number = version("stepdown")
    except PackageNotFoundError:
        number = "not installed"
    return CodeVersion(platform.node(), number, _digest_of(_package()))


def _package() -> Path:
    """Where the package lies. It is not loaded for that: its page of names knows all of it."""
    spec = find_spec(__name__.partition(".")[0])
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _digest_of(package: Path) -> str:
    """Of all code and data of the package; its folders may be links."""
    files = [
        Path(folder, name)
        for folder, _, names in os.walk(package, followlinks=True)
        for name in names
        if "__pycache__" not in folder and not name.endswith(".pyc")
    ]
    found = hashlib.sha256()
    for file in sorted(files):
        found.update(f"{file.relative_to(package)}\0".encode())
        found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()


def refuse_other_code(node: str, there: CodeVersion) -> None:
    """Raises BadInput where a node has another stepdown than this machine."""
    here = code_version()
    if there.stepdown != here.stepdown:
        problem = f"has stepdown {there.stepdown}, this machine {here.stepdown}: install the same"
    elif there.code != here.code:
        problem = f"has other code of stepdown {here.stepdown} than this machine: install the same"
    else:
        return
    raise BadInput(f"node {node} ({there.machine}) {problem}", field="operation.executor")


def refuse_other_measures(node: str, here: RunVersions, there: RunVersions) -> None:
    """Raises BadInput where a node's workloads or judge measure by other code than this machine's."""
    if here != there:
        differences = "; ".join(changes(here.to_json(), there.to_json()))
        raise BadInput(f"node {node} measures otherwise than this machine ({differences})", field="operation.executor")
