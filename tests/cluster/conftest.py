"""One cluster for all tests here: a node takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.nodes import Nodes, cluster


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    with cluster() as made:
        yield made
