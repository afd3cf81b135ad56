"""SWE-bench over two nodes. Both are on this machine and use its one Docker daemon, as two machines would use two."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepdown.builder.config.loading import config_of
from stepdown.builder.inspect.preparing import prepare_nodes
from stepdown.builder.run.nodes import read_nodes
from stepdown.harnesses.base import NodeNeeds
from stepdown.harnesses.containers import images
from tests.cluster.nodes import Nodes
from tests.conftest import ROOT, Shop
from tests.provider import Provider
from tests.swebench import abilities, repository
from tests.swebench.conftest import docker, image, written

__all__ = ["docker", "image"]

pytestmark = [pytest.mark.docker, pytest.mark.cluster]


def test_two_nodes_come_to_the_labels_that_the_abilities_imply(
    tmp_path: Path, nodes: Nodes, docker: Any, image: str
) -> None:
    nodes.have(2)
    shop = Shop(tmp_path)
    one = repository.instance(image)
    other = {**one, "instance_id": "spans__spans-2", "problem_statement": f"{one['problem_statement']}Once more."}
    file = written(tmp_path / "instances.jsonl", one, other)
    with Provider(abilities.SHORT_ABILITIES) as provider:
        config = abilities.config(provider.url, str(file), workers=2)
        config["operation"]["executor"] = {"ray": nodes.address, "per_node": 1}
        prepared = list(prepare_nodes(config_of(config, ROOT)))
        assert [node.state for node in prepared] == ["ready"] * 2, prepared
        result = shop.build(config)
        assert result.code == 0, result.err
        assert provider.repeated() == []
    assert shop.labels() == [abilities.SHORT_LABELS] * 2
    seen = read_nodes(shop.run)
    assert seen is not None
    assert all(node.calls > 0 for node in seen.nodes), "each node had an instance"


@pytest.fixture
def archived(tmp_path: Path, docker: Any, image: str) -> Iterator[str]:
    """An image that is in an archive, and not on this machine."""
    name = "stepdown-test-archived:1"
    docker.api.tag(image, *name.split(":"))
    with (tmp_path / "image.tar").open("wb") as file:
        for part in docker.api.get_image(name):
            file.write(part)
    docker.api.remove_image(name)
    yield name
    if images.is_here(docker, name):
        docker.api.remove_image(name)


def test_an_image_is_loaded_from_an_archive_where_no_registry_has_it(
    tmp_path: Path, docker: Any, archived: str
) -> None:
    needs = NodeNeeds({}, (archived,))
    _, lacking = images.fetched(needs)
    assert not lacking.there
    assert "0 of 1 are here; " in lacking.detail
    daemon, loaded = images.fetched(needs, tmp_path)
    assert daemon.there
    assert (loaded.there, loaded.detail) == (True, "1 of 1 are here; 1 loaded now")
    assert images.is_here(docker, archived)
    _, again = images.fetched(needs, tmp_path)
    assert again.detail == "1 of 1 are here"


def test_nothing_is_fetched_where_there_is_no_room_for_all(docker: Any) -> None:
    _, images_ = images.fetched(NodeNeeds({}, ("stepdown-test-absent:1",), image_gib=1e9))
    assert not images_.there
    assert images_.detail.startswith("1 are to be fetched, about 1000000000.0 GiB, and ")


def test_a_file_that_is_no_archive_is_named(tmp_path: Path, docker: Any) -> None:
    (tmp_path / "image.tar").write_bytes(b"not one")
    *_, said = images.fetched(NodeNeeds({}, ("stepdown-test-absent:1",)), tmp_path)
    assert (said.part, said.there) == ("images", False)
    assert "image.tar: it is no archive of images as `docker save` writes it" in said.detail
    *_, said = images.fetched(NodeNeeds({}, ("stepdown-test-absent:1",)), tmp_path / "nowhere")
    assert said.detail.endswith("nowhere: it can not be read: No such file or directory")
