"""Which server a run's audit is in step with. It is kept in the audit's own file; a key never is, only its variable.

A run may be somebody else's, and so may what it says of a server: to send a key there because a file says so would give
it away. So what is kept has a seal that only the key can make, and is believed where the seal holds.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from dataclasses import asdict, dataclass, replace
from typing import Literal

import httpx

from stepdown.audit.store import AuditStore
from stepdown.builder.common.secrets import SECRETS
from stepdown.builder.errors import BadInput

Tool = Literal["argilla", "label-studio"]
KEYS: dict[Tool, str] = {"argilla": "ARGILLA_API_KEY", "label-studio": "LABEL_STUDIO_API_KEY"}
"""The variables in which the tools' own clients look for a key."""
_KEPT = "server"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_NAME = 50
"""Characters of a project's title in Label Studio."""


@dataclass(frozen=True, slots=True)
class ServerLink:
    """A data set or project on a server."""

    tool: Tool
    address: str
    name: str
    """Of the data set in Argilla, of the project in Label Studio."""
    key: str
    """The variable that holds the key."""
    workspace: str = ""
    """Of the data set in Argilla; empty: the account's first one."""
    answers: int = 1
    """How many people the tool asks about a step that is assigned to nobody."""

    def read_key(self) -> str:
        """The key, from the environment; it is hidden in whatever is shown from here on. Raises BadInput."""
        SECRETS.know({self.key})
        value = os.environ.get(self.key, "").strip()
        if not value:
            raise BadInput(f"{self.key} is not set: it must hold a key of {self.address}", field="--key")
        return value


def server_link(
    tool: Tool, address: str, name: str, key: str = "", workspace: str = "", answers: int = 1
) -> ServerLink:
    """A link from what a person wrote. Raises BadInput."""
    try:
        parts = httpx.URL(address)
    except httpx.InvalidURL:
        raise BadInput("must be an http or https address", field="ADDRESS") from None
    if parts.scheme not in {"http", "https"} or not parts.host or parts.query or parts.fragment:
        raise BadInput("must be an http or https address", field="ADDRESS")
    if parts.userinfo:
        raise BadInput("a key does not belong into an address: name its variable with --key", field="ADDRESS")
    if key and not _VARIABLE.fullmatch(key):
        raise BadInput("must be the name of the variable that holds the key", field="--key")
    if workspace and tool != "argilla":
        raise BadInput("is for Argilla", field="--workspace")
    return ServerLink(tool, address.rstrip("/"), name, key or KEYS[tool], workspace, answers)


def name_for(folder: str) -> str:
    """What a run's data set or project is called where nobody says otherwise.

    >>> name_for("q"), name_for("may 26, tools")
    ('stepdown-q', 'stepdown-may-26-tools')
    """
    return f"stepdown-{re.sub(r'[^A-Za-z0-9]+', '-', folder).strip('-')}"[:_LONGEST_NAME]


def kept_link(store: AuditStore, key: str = "") -> ServerLink | None:
    """The server to which the run's steps went; None before the first push. `key` names another variable than then.

    Raises BadInput where it was not kept with the key that the variable holds.
    """
    kept = store.meta(_KEPT)
    if not kept:
        return None
    try:
        seal = kept.pop("seal")
        link = ServerLink(**kept)
        link = replace(link, key=key or link.key)
        sound = hmac.compare_digest(str(seal), _seal(link))
    except (AttributeError, KeyError, TypeError):
        sound = False
    if not sound:
        raise BadInput(
            "names a server, but not one that was pushed to with your key: name it yourself, "
            "stepdown audit push RUN ADDRESS --tool TOOL",
            file=store.path,
        )
    return link


def keep_link(store: AuditStore, link: ServerLink) -> None:
    """Remember the server. Raises BadInput where its key is not there."""
    store.set_meta(_KEPT, asdict(link) | {"seal": _seal(link)})


def _seal(link: ServerLink) -> str:
    """What only somebody who has the key can say of a server. Slow to make, so that no key is guessed from it."""
    told = json.dumps([link.tool, link.address, link.name, link.workspace])
    return hashlib.scrypt(link.read_key().encode(), salt=told.encode(), n=1 << 14, r=8, p=1).hex()
