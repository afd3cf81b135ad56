"""Docker images by the names that instances give them: used where they are, pulled where they are not."""

from __future__ import annotations

from collections import defaultdict
from threading import Lock
from typing import Any

from stepdown.builder.errors import Technical
from stepdown.harnesses.containers.engine import reaching

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
