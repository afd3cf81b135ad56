"""Loopback servers of Argilla and Label Studio: the part of their REST APIs by which an audit is in step with them.

    with LoopbackArgilla() as server:
        ...  # the SDK talks to server.url; server.answer(...) is a reviewer at work there

Paths and forms are those that Argilla 2.8.0 and Label Studio 1.23.2 answered with. They check keys and keep what they
receive; nothing of them is known to stepdown.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from tests.loopback import Loopback

OWNER_KEY, READ_ONLY_KEY = "owner-key-0123456789", "annotator-key-0123456789"
WHEN = {"inserted_at": "2026-01-01T00:00:00", "updated_at": "2026-01-01T00:00:00"}
Query = dict[str, list[str]]
Answered = tuple[int, Any]


class LoopbackServer(Loopback):
    """A JSON server in a thread. A context manager; each tool says what it answers."""

    key_header: ClassVar[str]

    def __init__(self) -> None:
        super().__init__(_handler(self))
        self.bodies: list[bytes] = []
        """Of every request that has one."""
        self.fail_after: dict[tuple[str, str], int] = {}
        """By method and the end of a path: after how many such requests the server answers 500 to one."""
        self.nonsense: dict[str, Any] = {}
        """By the end of a path: what is answered there, whatever was asked."""

    def written(self) -> list[tuple[str, str]]:
        """The requests that changed something."""
        return [(method, path) for method, path in self.requests if method != "GET"]

    def respond(self, method: str, path: str, query: Query, body: bytes, key: str) -> Answered:
        """Status and JSON value."""
        self.requests.append((method, path))
        if body:
            self.bodies.append(body)
        for (verb, end), left in self.fail_after.items():
            if verb == method and path.endswith(end):
                self.fail_after[verb, end] = left - 1
                if left == 0:
                    return 500, {"detail": "busy"}
        for end, value in self.nonsense.items():
            if path.endswith(end):
                return 200, value
        if refusal := self.refusal(method, path, key):
            return refusal
        data = json.loads(body) if body else None
        for verb, road, act in self.roads():
            if verb == method and (found := re.fullmatch(road, path)):
                return act(query, data, *found.groups())
        return 404, {"detail": f"no such page: {method} {path}"}

    def refusal(self, method: str, path: str, key: str) -> Answered | None:
        """What somebody gets who may not do this."""
        raise NotImplementedError

    def roads(self) -> Sequence[tuple[str, str, Callable[..., Answered]]]:
        """Method, pattern of a path, and what is done."""
        raise NotImplementedError

    def record_ids(self) -> list[str]:
        """The steps that are there, in order, each as `step` or `step reviewer`."""
        raise NotImplementedError

    def change(self, record: str, **values: str) -> None:
        """Somebody changes what a record says of its step: `id` or `digest`."""
        raise NotImplementedError

    def answer(self, record: str, by: str, verdict: str, notes: str = "", status: str = "submitted") -> None:
        """A reviewer answers a record, or changes their answer; `status`: submitted, draft or discarded."""
        raise NotImplementedError

    def rename(self) -> None:
        """Somebody makes the questions others than the audit's."""
        raise NotImplementedError


def _handler(server: LoopbackServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            key = self.headers.get(server.key_header) or ""
            status, value = server.respond(self.command, parts.path, parse_qs(parts.query), body, key)
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def do_PUT(self) -> None:
            self._serve()

        def do_PATCH(self) -> None:
            self._serve()

    return Handler


def _named(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


class LoopbackArgilla(LoopbackServer):
    """Argilla, with one workspace and two accounts beside the owner's."""

    key_header = "X-Argilla-Api-Key"

    def __init__(self) -> None:
        super().__init__()
        self.people = {name: _named(name) for name in ("owner", "ana", "bo")}
        self.workspace = {"id": _named("workspace"), "name": "default"} | WHEN
        self.data_sets: dict[str, dict[str, Any]] = {}
        self.parts: dict[tuple[str, str], list[dict[str, Any]]] = {}
        """Fields, questions and metadata properties of data sets."""
        self.records: dict[str, dict[str, Any]] = {}
        """By external id."""

    def refusal(self, method: str, path: str, key: str) -> Answered | None:
        if key not in (OWNER_KEY, READ_ONLY_KEY):
            return 401, {"detail": {"params": {"detail": "Could not validate credentials"}}}
        if key == READ_ONLY_KEY and method != "GET":
            return 403, {"detail": {"params": {"detail": "Operation not allowed"}}}
        return None

    def roads(self) -> Sequence[tuple[str, str, Callable[..., Answered]]]:
        one = r"/api/v1/(?:me/)?datasets/([0-9a-f-]+)"
        parts = r"/(fields|questions|metadata-properties|vectors-settings)"
        return (
            ("GET", "/api/v1/me", lambda query, body: (200, self._user("owner"))),
            ("GET", "/api/v1/users", lambda query, body: (200, {"items": [self._user(name) for name in self.people]})),
            ("GET", "/api/v1/me/workspaces", lambda query, body: (200, {"items": [self.workspace]})),
            ("GET", r"/api/v1/workspaces/[0-9a-f-]+", lambda query, body: (200, self.workspace)),
            ("GET", "/api/v1/me/datasets", lambda query, body: (200, {"items": list(self.data_sets.values())})),
            ("POST", "/api/v1/datasets", self._make),
            ("GET", one, lambda query, body, name: (200, self.data_sets[name])),
            ("PATCH", one, lambda query, body, name: (200, self.data_sets[name])),
            ("PUT", f"{one}/publish", lambda query, body, name: (200, self._set(name, status="ready"))),
            ("GET", one + parts, lambda query, body, name, kind: (200, {"items": self.parts.get((name, kind), [])})),
            ("POST", one + parts, self._add_part),
            ("PUT", f"{one}/records/bulk", self._take),
            ("GET", f"{one}/records", self._list),
        )

    def _user(self, name: str) -> dict[str, Any]:
        return {"id": self.people[name], "username": name, "first_name": name, "role": "annotator"} | WHEN

    def _make(self, query: Query, body: Any) -> Answered:
        made = {**body, "id": _named(body["name"]), "status": "draft", "workspace_id": self.workspace["id"], **WHEN}
        self.data_sets[made["id"]] = made
        return 201, made

    def _set(self, name: str, **changed: Any) -> dict[str, Any]:
        self.data_sets[name] |= changed
        return self.data_sets[name]

    def _add_part(self, query: Query, body: Any, name: str, kind: str) -> Answered:
        made = {**body, "id": _named(f"{kind} {body['name']}"), "dataset_id": name, **WHEN}
        self.parts.setdefault((name, kind), []).append(made)
        return 201, made

    def _take(self, query: Query, body: Any, name: str) -> Answered:
        known = {field["name"] for field in self.parts[name, "fields"]}
        taken = []
        for item in body["items"]:
            if not set(item["fields"]) <= known:
                return 422, {"detail": "a field that the data set does not have"}
            made = {**item, "id": _named(item["external_id"]), "dataset_id": name, "status": "pending", "responses": []}
            made |= WHEN
            self.records[item["external_id"]] = made
            taken.append(made)
        return 200, {"items": taken, "updated_item_ids": []}

    def _list(self, query: Query, body: Any, name: str) -> Answered:
        start, count = int(query["offset"][0]), int(query["limit"][0])
        shown = list(self.records.values())[start : start + count]
        if "responses" not in query.get("include", []):
            shown = [{**record, "responses": []} for record in shown]
        return 200, {"items": shown}

    def record_ids(self) -> list[str]:
        return list(self.records)

    def change(self, record: str, **values: str) -> None:
        self.records[record]["metadata"] |= {{"id": "row"}.get(name, name): value for name, value in values.items()}

    def answer(self, record: str, by: str, verdict: str, notes: str = "", status: str = "submitted") -> None:
        values = {"verdict": {"value": verdict}} | ({"notes": {"value": notes}} if notes else {})
        responses = self.records[record]["responses"]
        responses[:] = [one for one in responses if one["user_id"] != self.people[by]]
        responses.append(
            {"id": _named(f"{record} {by}"), "user_id": self.people[by], "values": values, "status": status}
        )

    def rename(self) -> None:
        for question in next(found for (_, kind), found in self.parts.items() if kind == "questions"):
            question["name"] = f"other {question['name']}"


class LoopbackLabelStudio(LoopbackServer):
    """Label Studio, with two accounts beside the owner's."""

    key_header = "Authorization"
    personal = "eyJhbGciOiJIUzI1NiJ9.eyJ0b2tlbl90eXBlIjoicmVmcmVzaCJ9.c2lnbmVk"
    """A personal token: it only buys access."""

    def __init__(self) -> None:
        super().__init__()
        self.people = {"owner": 1, "ana": 2, "bo": 3}
        self.projects: list[dict[str, Any]] = []
        self.tasks: list[dict[str, Any]] = []
        self.access: set[str] = set()
        """Access that was bought and has not expired."""
        self.longest_page = 100
        self.only_page = False
        """Gives its first page, whichever was asked for."""
        self.moved: str = ""
        """Where every request is sent on to, if anywhere."""

    def refusal(self, method: str, path: str, key: str) -> Answered | None:
        if self.moved:
            return 302, f"{self.moved}{path}"
        if path == "/api/token/refresh":
            return None
        kind, _, value = key.partition(" ")
        if (kind, value) == ("Token", READ_ONLY_KEY) and method != "GET":
            return 403, {"detail": "You do not have permission to perform this action."}
        if (kind, value in self.access) != ("Bearer", True) and (kind, value) not in (
            ("Token", OWNER_KEY),
            ("Token", READ_ONLY_KEY),
        ):
            return 401, {"detail": "Invalid token."}
        return None

    def roads(self) -> Sequence[tuple[str, str, Callable[..., Answered]]]:
        return (
            ("POST", "/api/token/refresh", self._buy),
            ("GET", "/api/users", lambda query, body: (200, [*self._users()])),
            ("GET", "/api/projects", self._find),
            ("POST", "/api/projects", self._make),
            ("POST", r"/api/projects/(\d+)/import", self._take),
            ("GET", "/api/tasks", self._list),
        )

    def _buy(self, query: Query, body: Any) -> Answered:
        if body.get("refresh") != self.personal:
            return 401, {"detail": "Token is invalid"}
        self.access = {f"access-{len(self.requests)}"}
        return 200, {"access": next(iter(self.access))}

    def _users(self) -> Iterator[dict[str, Any]]:
        yield from ({"id": number, "username": "", "email": name} for name, number in self.people.items())

    def _find(self, query: Query, body: Any) -> Answered:
        wanted = query["title"][0]
        found = [project for project in self.projects if wanted in project["title"]]
        return self._page(query, found, "results")

    def _page(self, query: Query, items: list[Any], name: str) -> Answered:
        size, page = min(int(query["page_size"][0]), self.longest_page), int(query["page"][0])
        page = 1 if self.only_page else page
        shown = items[(page - 1) * size : page * size]
        if page > 1 and not shown:
            return 404, {"detail": "Invalid page."}
        return 200, {name: shown, "total": len(items)}

    def _make(self, query: Query, body: Any) -> Answered:
        if not 3 <= len(body["title"]) <= 50:
            return 400, {"validation_errors": {"title": ["between 3 and 50 characters"]}}
        made = {**body, "id": len(self.projects) + 1}
        self.projects.append(made)
        return 201, made

    def _take(self, query: Query, body: Any, project: str) -> Answered:
        for item in body:
            self.tasks.append(
                {"id": len(self.tasks) + 1, "project": int(project), "annotations": [], "drafts": [], **item}
            )
        return 201, {"task_count": len(body)}

    def _list(self, query: Query, body: Any) -> Answered:
        of_project = [task for task in self.tasks if task["project"] == int(query["project"][0])]
        return self._page(query, of_project, "tasks")

    def record_ids(self) -> list[str]:
        return [f"{task['data']['id']} {task['data']['reviewer']}".rstrip() for task in self.tasks]

    def change(self, record: str, **values: str) -> None:
        self.tasks[self.record_ids().index(record)]["data"] |= values

    def answer(self, record: str, by: str, verdict: str, notes: str = "", status: str = "submitted") -> None:
        task = self.tasks[self.record_ids().index(record)]
        result = [{"from_name": "verdict", "to_name": "prefix", "type": "choices", "value": {"choices": [verdict]}}]
        if notes:
            result.append({"from_name": "notes", "to_name": "prefix", "type": "textarea", "value": {"text": [notes]}})
        if status == "draft":
            task["drafts"].append({"id": 1, "user": by, "result": result})
            return
        number = self.people[by]
        task["annotations"] = [one for one in task["annotations"] if one["completed_by"] != number]
        made = {"id": len(task["annotations"]) + 1, "completed_by": number, "result": result}
        task["annotations"].append({**made, "was_cancelled": status == "discarded"})

    def rename(self) -> None:
        self.projects[0]["label_config"] = "<View/>"


SERVERS: dict[str, type[LoopbackServer]] = {"argilla": LoopbackArgilla, "label-studio": LoopbackLabelStudio}
