"""Docker, and the tests' own repository in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.records import Instance
from stepdown.harnesses.swebench.instances import select
from tests.swebench import repository
from tests.swebench.images import repository_image


@pytest.fixture(scope="session")
def docker() -> Iterator[Any]:
    import docker as sdk

    client = sdk.DockerClient.from_env(timeout=60)
    client.ping()
    yield client
    client.close()


@pytest.fixture(scope="session")
def image(docker: Any) -> str:
    """The image of the repository with a bug."""
    return repository_image(docker, repository.FILES)


def written(path: Path, *rows: dict[str, Any]) -> Path:
    """A JSONL file of instances."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def read(path: Path, *rows: dict[str, Any]) -> list[Instance]:
    """Rows as the instances that the harness makes of them, by way of a file."""
    return list(select({"file": str(written(path / "instances.jsonl", *rows))}))
