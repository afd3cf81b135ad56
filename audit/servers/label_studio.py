"""Label Studio, by its REST API: a project, a task a step.

Its own SDK can not stand beside stepdown's pins (its OpenCV wants an older numpy, and it weighs half a gigabyte), and
what is needed of it are five requests. What comes back is read as JSON, by the same reader as a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx

from stepdown.audit.exchange.label_studio import CONFIG, label_studio_task, read_tasks
from stepdown.audit.exchange.records import IncomingAnswer, OutgoingStep, parsed_json, record_id
from stepdown.audit.servers.base import BATCH, ServerFailed
from stepdown.audit.servers.link import ServerLink
from stepdown.builder.common.secrets import SECRETS
from stepdown.builder.errors import BadInput

_TIMEOUT = 60.0
_LARGEST_ANSWER = 256 << 20
"""Bytes of one page of tasks."""


@contextmanager
def open_label_studio(link: ServerLink) -> Iterator[LabelStudioServer]:
    """The run's project on a server; it is made where there is none. Raises BadInput and ServerFailed."""
    # A redirect is not followed: the key would go wherever it leads.
    with httpx.Client(timeout=_TIMEOUT, follow_redirects=False) as client:
        yield LabelStudioServer(_Api(link, client))


class LabelStudioServer:
    """A project of tasks."""

    def __init__(self, api: _Api) -> None:
        self._api, link = api, api.link
        self.place = f"project {link.name} on {link.address}"
        self._project = self._find(link.name)
        if self._project is None:
            self._project = self._create(link)

    def read_ids(self) -> set[str]:
        return {record_id(str(data.get("id")), str(data.get("reviewer") or "")) for data in map(_data, self._tasks())}

    def add(self, steps: Sequence[OutgoingStep]) -> None:
        tasks = [{"data": _storable(label_studio_task(step)["data"])} for step in steps]
        self._api.post(f"projects/{self._project}/import", tasks)

    def read_answers(self) -> Iterator[IncomingAnswer]:
        accounts = self._accounts()
        return read_tasks(_named(task, accounts) for task in self._tasks())

    def _find(self, name: str) -> int | None:
        """The oldest project of that name: titles may be given twice."""
        listed = self._pages("projects", "results", {"title": name})
        named = [one for one in map(_mapping, listed) if one.get("title") == name and isinstance(one.get("id"), int)]
        if not named:
            return None
        oldest = min(named, key=lambda project: project["id"])
        if 'name="verdict"' not in str(oldest.get("label_config")):
            raise BadInput(f"{self.place} asks other questions: choose another --name")
        return int(oldest["id"])

    def _create(self, link: ServerLink) -> int:
        made = self._api.post(
            "projects",
            {
                "title": link.name,
                "description": "Would one tier lower still handle this step?",
                "label_config": CONFIG,
                "maximum_annotations": link.answers,
                "show_skip_button": True,
                "show_collab_predictions": False,
            },
        )
        if not isinstance(made, dict) or not isinstance(made.get("id"), int):
            raise self._api.strange("a new project has no `id`")
        return int(made["id"])

    def _tasks(self) -> Iterator[Any]:
        yield from self._pages("tasks", "tasks", {"project": self._project, "fields": "all"})

    def _accounts(self) -> Mapping[int, str]:
        """Addresses of accounts by their numbers; none where this key may not list them.

        Any other answer is refused: who is `ana@lab` today must not be another reviewer, `2`, tomorrow.
        """
        try:
            users = self._api.get("users", {})
        except _UnknownKey:
            return {}
        if not isinstance(users, list):
            raise self._api.strange("no list of users")
        named = [user for user in map(_mapping, users) if isinstance(user.get("id"), int) and user.get("email")]
        return {user["id"]: str(user["email"]) for user in named}

    def _pages(self, path: str, name: str, asked: Mapping[str, Any]) -> Iterator[Any]:
        """Every item of a list that comes in pages. It ends at the first page that brings nothing new.

        Raises ServerFailed where that are fewer than the server has: what is missing would be pushed again, or its
        answers not be taken, without a word.
        """
        seen: set[str] = set()
        page = there = 0
        while True:
            page += 1
            answer = self._api.get(path, {**asked, "page": page, "page_size": BATCH}, last_page_is_404=page > 1)
            items = answer.get(name) if isinstance(answer, dict) else None
            if not isinstance(items, list):
                raise self._api.strange(f"no list of {name}")
            new = [item for item in items if _number(item) not in seen]
            there = _count(answer, there)
            if not new and len(seen) < there:
                raise ServerFailed(
                    f"{self._api.link.address} gave {len(seen)} of {there} {path}; the same command goes on"
                )
            if not new:
                return
            seen.update(map(_number, new))
            yield from new


class _UnknownKey(BadInput):
    """The server does not know the key, or it may not do this."""


class _Api:
    """Requests to a Label Studio server, as one account."""

    def __init__(self, link: ServerLink, client: httpx.Client) -> None:
        self.link, self._client = link, client
        self._key = link.read_key()
        self._access = ""

    def get(self, path: str, asked: Mapping[str, Any], *, last_page_is_404: bool = False) -> Any:
        return self._sent("GET", path, params=asked, empty_at_404=last_page_is_404)

    def post(self, path: str, body: Any) -> Any:
        return self._sent("POST", path, json=body)

    def strange(self, what: str) -> BadInput:
        return BadInput(f"{self.link.address} does not answer as Label Studio does: {what}")

    def _sent(self, method: str, path: str, *, empty_at_404: bool = False, **what: Any) -> Any:
        status, data = self._answer(method, path, **what)
        if status == 401 and self._access:  # a personal token's access lasts five minutes
            self._access = ""
            status, data = self._answer(method, path, **what)
        if status == 404 and empty_at_404:
            return {"tasks": [], "results": []}
        if status in (401, 403):
            raise self._unknown_key(status)
        told = SECRETS.line(data[:500].decode("utf-8", "replace"))
        if status == 429 or status >= 500:
            raise ServerFailed(f"{self.link.address} answers {status}: {told}; the same command goes on")
        if not 200 <= status < 300:
            raise BadInput(f"{self.link.address} answers {status} to {method} {path}: {told}")
        try:
            return parsed_json(data.decode("utf-8"))
        except (ValueError, RecursionError):
            raise self.strange("not JSON") from None

    def _answer(self, method: str, path: str, **what: Any) -> tuple[int, bytes]:
        return self._raw(method, self._url(path), headers={"Authorization": self._authorization()}, **what)

    def _unknown_key(self, status: int) -> _UnknownKey:
        return _UnknownKey(f"{self.link.address} does not take the key in {self.link.key} ({status})", field="--key")

    def _url(self, path: str) -> str:
        return f"{self.link.address}/api/{path}"

    def _raw(self, method: str, url: str, **what: Any) -> tuple[int, bytes]:
        try:
            with self._client.stream(method, url, **what) as response:
                data = bytearray()
                for piece in response.iter_bytes():
                    data += piece
                    if len(data) > _LARGEST_ANSWER:
                        raise self.strange(f"more than {_LARGEST_ANSWER} bytes")
                return response.status_code, bytes(data)
        except httpx.HTTPError as error:
            told = SECRETS.line(str(error) or type(error).__name__)
            raise ServerFailed(f"{self.link.address} can not be reached: {told}; the same command goes on") from None

    def _authorization(self) -> str:
        """The header of an account. A personal token is exchanged for access; an older one is sent as it is."""
        if self._key.count(".") != 2:
            return f"Token {self._key}"
        if not self._access:
            status, data = self._raw("POST", self._url("token/refresh"), json={"refresh": self._key})
            if status != 200:
                raise self._unknown_key(status)
            try:
                self._access = str(parsed_json(data.decode("utf-8"))["access"])
            except (ValueError, KeyError, TypeError, RecursionError):
                raise self.strange("no access token") from None
        return f"Bearer {self._access}"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(item: Any) -> str:
    """What an item of a list is known by."""
    return str(_mapping(item).get("id", item))


def _count(page: Mapping[str, Any], before: int) -> int:
    """How many items a list has, as its newest page that says so has it: `total` of tasks, `count` of projects."""
    told = page.get("total", page.get("count"))
    return told if isinstance(told, int) else before


def _data(task: Any) -> Mapping[str, Any]:
    return _mapping(_mapping(task).get("data"))


def _named(task: Any, accounts: Mapping[int, str]) -> Any:
    """The task with the addresses of those who annotated it, in place of their numbers."""
    annotations = _mapping(task).get("annotations")
    for annotation in annotations if isinstance(annotations, list) else ():
        by = annotation.get("completed_by") if isinstance(annotation, dict) else None
        if isinstance(by, int):
            annotation["completed_by"] = accounts.get(by, by)
    return task


def _storable(value: Any) -> Any:
    """The same without NUL, which not every server's database stores."""
    match value:
        case str():
            return value.replace("\0", "\u2400")
        case list():
            return [_storable(item) for item in value]
        case dict():
            return {name: _storable(item) for name, item in value.items()}
    return value
