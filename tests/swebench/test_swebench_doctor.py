"""`stepdown doctor` says how Docker stands and which images are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Shop, stepdown
from tests.swebench import abilities, repository
from tests.swebench.conftest import written

pytestmark = pytest.mark.docker


def test_it_tells_of_docker_and_of_images_that_are_still_to_be_pulled(shop: Shop, tmp_path: Path, image: str) -> None:
    rows = [repository.instance(image), repository.instance("nobody/nothing:1", "nothing__nothing-1")]
    config = shop.write(abilities.config("http://127.0.0.1:9/v1", str(written(tmp_path / "i.jsonl", *rows))))
    told = stepdown("doctor", str(config))
    assert told.code == 0
    assert "docker: version" in told.out
    assert "GiB free in" in told.out
    assert "1 of 2 are here; to be pulled: nobody/nothing:1" in " ".join(told.out.split())


def test_it_tells_what_the_reference_patches_touch(shop: Shop, tmp_path: Path, image: str) -> None:
    configuring = repository.added("setup.cfg", "[metadata]\nname = spans\n")
    rows = [repository.instance(image), repository.instance(image, "spans__spans-2", patch=configuring)]
    rows.append(repository.instance(image, "spans__spans-3", patch=None))
    config = shop.write(abilities.config("http://127.0.0.1:9/v1", str(written(tmp_path / "i.jsonl", *rows))))
    told = " ".join(stepdown("doctor", str(config)).out.split())
    assert "1 of 2 reference patches touch test infrastructure: spans__spans-2: setup.cfg" in told


def test_a_daemon_that_does_not_answer_is_named(
    shop: Shop, tmp_path: Path, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = shop.write(
        abilities.config("http://127.0.0.1:9/v1", str(written(tmp_path / "i.jsonl", repository.instance(image))))
    )
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody")
    told = stepdown("doctor", str(config))
    assert told.code == 2
    assert "Docker does not answer" in told.out + told.err
