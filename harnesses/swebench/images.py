"""Docker images by the names that instances give them: used where they are, pulled where they are not."""

from __future__ import annotations

from collections import defaultdict
from threading import Lock
from typing import Any

from builder.errors import Technical

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
    """Pull the image unless it is there. Raises Technical where it cannot be had: that says nothing about a model."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    try:
        with _pulling[name]:
            if not is_here(docker, name):
                docker.images.pull(name)
    except (DockerException, RequestException) as error:
        problem = str(error).split("\n")[0]
        raise Technical(f"the image {name} is not on this machine and can not be pulled: {problem}") from None
