"""Docker images by the names that instances give them: used where they are, pulled where they are not."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from stepdown.builder.errors import BadInput, StepdownError, Technical
from stepdown.harnesses.base import Need, NodeNeeds
from stepdown.harnesses.containers.engine import connect, described, reaching

_pulling: defaultdict[str, Lock] = defaultdict(Lock)


def is_here(docker: Any, name: str) -> bool:
    """Whether the daemon has the image. Raises docker.errors.DockerException."""
    from docker.errors import ImageNotFound

    try:
        docker.images.get(name)
    except ImageNotFound:
        return False
    return True


def ensure(docker: Any, name: str) -> None:
    """Pull the image unless it is there. Raises Technical where it cannot be had: that says nothing about a model.

    Raises Lost, its subclass, where the daemon does not answer: then it may be had in a moment.
    """
    from docker.errors import APIError

    with _pulling[name], reaching():
        if is_here(docker, name):
            return
        try:
            docker.images.pull(name)
        except APIError as error:
            problem = str(error).split("\n")[0]
            raise Technical(f"the image {name} is not on this machine and can not be pulled: {problem}") from None


def fetched(needs: NodeNeeds, archives: Path | None = None) -> Iterator[Need]:
    """The daemon, room for the images, and the images: loaded from the folder of archives or pulled where absent.

    Nothing is fetched where there is no room for all of it.
    """
    try:
        yield Need("docker", True, described())
        client = connect()
    except StepdownError as error:
        yield Need("docker", False, str(error))
        return
    try:
        with reaching():
            absent = [name for name in needs.images if not is_here(client, name)]
            root = str(client.info().get("DockerRootDir", ""))
        if absent and (problem := _too_little_room(root, len(absent), needs.image_gib)):
            yield Need("images", False, problem)
            return
        loaded = _load(client, absent, archives) if absent and archives is not None else []
        problems = _pull(client, [name for name in absent if name not in loaded])
    except StepdownError as error:
        yield Need("images", False, str(error))
        return
    told = f"{len(needs.images) - len(problems)} of {len(needs.images)} are here"
    pulled = len(absent) - len(loaded) - len(problems)
    new = ", ".join(f"{count} {how} now" for count, how in ((len(loaded), "loaded"), (pulled, "pulled")) if count)
    yield Need("images", not problems, "; ".join(part for part in (told, new, *problems[:1]) if part))


def _too_little_room(root: str, count: int, gib_each: float) -> str:
    """Why so many images do not fit beside what lies there; empty where they do, or nobody here can tell."""
    try:
        free = shutil.disk_usage(root).free / 2**30
    except OSError:
        return ""
    wanted = count * gib_each
    return f"{count} are to be fetched, about {wanted:.1f} GiB, and {free:.1f} GiB are free" if wanted > free else ""


def _pull(client: Any, names: Sequence[str]) -> list[str]:
    """Pull images; why those that could not be had could not. Raises Lost."""
    problems = []
    for name in names:
        try:
            ensure(client, name)
        except Technical as error:
            if type(error) is not Technical:
                raise  # the daemon is gone, and no other image will do better
            problems.append(str(error))
    return problems


def _load(client: Any, wanted: Sequence[str], folder: Path) -> list[str]:
    """Load those images that archives of the folder hold; their names. Raises BadInput and Lost."""
    found: list[str] = []
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".tar")
    except OSError as error:
        raise BadInput(f"it can not be read: {error.strerror}", file=folder) from None
    for path in files:
        if here := [name for name in _names_in(path) if name in wanted and name not in found]:
            with path.open("rb") as archive, reaching():
                client.api.load_image(archive)
            found += here
    return found


def _names_in(path: Path) -> list[str]:
    """The names of the images in an archive that `docker save` wrote. Raises BadInput."""
    try:
        with tarfile.open(path, "r:") as archive:
            manifest = archive.extractfile("manifest.json")
            assert manifest is not None
            return [name for image in json.loads(manifest.read(1 << 24)) for name in image.get("RepoTags") or ()]
    except (OSError, KeyError, ValueError, TypeError, AssertionError, AttributeError, tarfile.TarError):
        raise BadInput("it is no archive of images as `docker save` writes it", file=path) from None
