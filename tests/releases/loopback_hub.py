"""A loopback Hub: the part of the Hugging Face Hub's API by which its own client uploads, lists and loads data sets.

    with LoopbackHub() as hub:
        ...  # HF_ENDPOINT is hub.url; hub.files("org/name") is what the repository holds

It stores what it receives, byte for byte. Large files come by Git LFS's basic transfer (HF_HUB_DISABLE_XET=1), the
others within the commit. Xet, by which the real Hub takes large files today, it does not speak.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.loopback import Loopback

WRITER, READER = "hf_" + "w" * 30, "hf_" + "r" * 30
"""Tokens: one that may write, one that may only read."""
_LARGE = re.compile(r"\.parquet$")


@dataclass(frozen=True)
class Stored:
    """A file of a commit."""

    content: bytes
    large: bool

    @property
    def blob(self) -> str:
        """Git's digest: of the content, or of the pointer that stands for it."""
        data = self.pointer if self.large else self.content
        return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def pointer(self) -> bytes:
        return (
            f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {len(self.content)}\n".encode()
        )

    def listed(self, path: str) -> dict[str, Any]:
        entry: dict[str, Any] = {"type": "file", "path": path, "size": len(self.content), "oid": self.blob}
        if self.large:
            entry["lfs"] = {"oid": self.sha256, "size": len(self.content), "pointerSize": len(self.pointer)}
        return entry


@dataclass
class Repository:
    """A data set on the Hub: its commits, newest last, and its tags."""

    private: bool
    commits: dict[str, dict[str, Stored]] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def head(self) -> str:
        return list(self.commits)[-1]

    def add(self, files: dict[str, Stored], message: str) -> str:
        told = json.dumps([len(self.commits), message, {name: file.sha256 for name, file in sorted(files.items())}])
        commit = hashlib.sha1(told.encode()).hexdigest()
        self.commits[commit] = files
        self.messages.append(message)
        return commit

    def resolve(self, revision: str) -> str:
        name = unquote(revision)
        return self.head if name == "main" else self.tags.get(name, name)


@dataclass(frozen=True)
class Trouble:
    """What the Hub does in place of answering: a status, or nothing (the connection is closed)."""

    status: int | None
    said: str = ""


class _Refused(Exception):
    def __init__(self, status: int, said: str, code: str = "") -> None:
        self.status, self.said, self.code = status, said, code


class LoopbackHub(Loopback):
    """The server, in a thread. A context manager."""

    def __init__(self) -> None:
        super().__init__(_handler(self))
        self.repositories: dict[str, Repository] = {}
        self.objects: dict[str, bytes] = {}
        """Large files by their digest, whether a commit names them or not."""
        self.tokens: set[str] = set()
        """Every token that was shown."""
        self.troubles: list[tuple[str, str, Trouble]] = []
        """Method, a pattern of the path, and what happens once; the first that fits is taken and removed."""
        self.meanwhile: Callable[[], object] | None = None
        """What somebody else does, once, just before the next commit arrives."""

    def files(self, name: str, revision: str = "main") -> dict[str, bytes]:
        """What a repository holds, but for the file that the Hub itself puts there."""
        repository = self.repositories[name]
        held = repository.commits[repository.resolve(revision)]
        return {path: file.content for path, file in held.items() if path != ".gitattributes"}

    def create(self, name: str, files: dict[str, bytes] | None = None, *, private: bool = True) -> Repository:
        """A repository that is there already, perhaps with files of somebody's."""
        attributes = Stored(b"*.parquet filter=lfs diff=lfs merge=lfs -text\n", large=False)
        self.repositories[name] = made = Repository(private)
        made.add({".gitattributes": attributes}, "initial commit")
        if files:
            held = {path: Stored(content, large=False) for path, content in files.items()}
            made.add({".gitattributes": attributes, **held}, "by hand")
        return made

    def sent(self, method: str, pattern: str) -> int:
        """How many such requests came in."""
        return sum(1 for verb, path in self.requests if verb == method and re.search(pattern, path))


def _handler(hub: LoopbackHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def do_PUT(self) -> None:
            self._serve()

        def do_HEAD(self) -> None:
            self._serve()

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) if not self._chunked() else self._all()
            parts = urlsplit(self.path)
            hub.requests.append((self.command, parts.path))
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            hub.tokens.add(token)
            for number, (method, pattern, trouble) in enumerate(hub.troubles):
                if method == self.command and re.search(pattern, parts.path):
                    del hub.troubles[number]
                    if trouble.status is None:
                        self.close_connection = True
                        return
                    self._answer(trouble.status, {"error": trouble.said}, {"X-Error-Message": trouble.said})
                    return
            try:
                for methods, road, act in ROADS:
                    found = re.fullmatch(road, parts.path)
                    if found and self.command in methods:
                        self._give(act(hub, token, body, parse_qs(parts.query), *found.groups()))
                        return
                raise _Refused(404, f"no such page: {self.command} {parts.path}")
            except _Refused as refused:
                named = {"X-Error-Message": refused.said} | ({"X-Error-Code": refused.code} if refused.code else {})
                self._answer(refused.status, {"error": refused.said}, named)

        def _chunked(self) -> bool:
            return self.headers.get("Transfer-Encoding", "").lower() == "chunked"

        def _all(self) -> bytes:
            return b"".join(iter(self._chunk, b""))

        def _chunk(self) -> bytes:
            size = int(self.rfile.readline(), 16)
            data = self.rfile.read(size)
            self.rfile.readline()
            return data

        def _give(self, given: Any) -> None:
            if isinstance(given, tuple):
                content, headers = given
                self._answer(200, content, headers)
            else:
                self._answer(200, given, {})

        def _answer(self, status: int, content: Any, headers: dict[str, str]) -> None:
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            start, end = 0, len(data)
            if status == 200 and (wanted := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")):
                start, end = int(wanted[1]), min(int(wanted[2] or len(data) - 1) + 1, len(data))
                status, headers = 206, {**headers, "Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(end - start))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data[start:end])

    return Handler


Act = Callable[..., Any]
NAME = r"([\w.-]+/[\w.-]+)"
Query = dict[str, list[str]]


def _may_write(token: str) -> None:
    if token == READER:
        raise _Refused(403, "You don't have the required permissions to perform this action.")
    if token != WRITER:
        raise _Refused(401, "Invalid credentials in Authorization header")


def _found(hub: LoopbackHub, token: str, name: str) -> Repository:
    repository = hub.repositories.get(name)
    if repository is None or (repository.private and token not in (WRITER, READER)):
        raise _Refused(404, "Repository not found", "RepoNotFound")
    return repository


def _held(hub: LoopbackHub, token: str, name: str, revision: str) -> tuple[str, dict[str, Stored]]:
    repository = _found(hub, token, name)
    commit = repository.resolve(revision)
    if commit not in repository.commits:
        raise _Refused(404, "Revision not found", "RevisionNotFound")
    return commit, repository.commits[commit]


def who_am_i(hub: LoopbackHub, token: str, body: bytes, query: Query) -> Any:
    if token not in (WRITER, READER):
        raise _Refused(401, "Invalid credentials in Authorization header")
    return {"type": "user", "name": "somebody", "orgs": [{"name": "lab"}], "auth": {"type": "access_token"}}


def create(hub: LoopbackHub, token: str, body: bytes, query: Query) -> Any:
    _may_write(token)
    asked = json.loads(body)
    name = f"{asked['organization']}/{asked['name']}"
    if asked["organization"] not in ("somebody", "lab"):
        raise _Refused(403, "You don't have the rights to create a dataset under this namespace")
    if name in hub.repositories:
        raise _Refused(409, "You already created this dataset repo")
    hub.create(name, private=asked["visibility"] == "private")
    return {"url": f"{hub.url}/datasets/{name}", "id": "1"}


def describe(hub: LoopbackHub, token: str, body: bytes, query: Query, name: str, revision: str = "main") -> Any:
    commit, files = _held(hub, token, name, revision)
    listed = [{"rfilename": path} for path in files]
    return {"id": name, "sha": commit, "private": hub.repositories[name].private, "siblings": listed, "tags": []}


def tree(
    hub: LoopbackHub, token: str, body: bytes, query: Query, name: str, revision: str, under: str | None = None
) -> Any:
    files = _held(hub, token, name, revision)[1]
    folder = f"{unquote(under)}/" if under else ""
    inside = {path: file for path, file in files.items() if path.startswith(folder)}
    if folder and not inside:
        raise _Refused(404, "Entry not found", "EntryNotFound")
    deep = query.get("recursive", ["false"])[0].lower() == "true"
    folders = {folder + path[len(folder) :].split("/")[0] for path in inside if "/" in path[len(folder) :]}
    shown = [file.listed(path) for path, file in inside.items() if deep or "/" not in path[len(folder) :]]
    return [*({"type": "directory", "path": path, "oid": "0" * 40} for path in sorted(folders)), *shown]


def refs(hub: LoopbackHub, token: str, body: bytes, query: Query, name: str) -> Any:
    repository = _found(hub, token, name)
    tags = [{"name": tag, "ref": f"refs/tags/{tag}", "targetCommit": commit} for tag, commit in repository.tags.items()]
    main = {"name": "main", "ref": "refs/heads/main", "targetCommit": repository.head}
    return {"branches": [main], "converts": [], "tags": tags}


def validate_card(hub: LoopbackHub, token: str, body: bytes, query: Query) -> Any:
    return {"errors": [], "warnings": []}


def ask_modes(hub: LoopbackHub, token: str, body: bytes, query: Query, name: str, revision: str) -> Any:
    _may_write(token)
    files = _held(hub, token, name, revision)[1]
    return {
        "files": [
            {
                "path": asked["path"],
                "uploadMode": "lfs" if _LARGE.search(asked["path"]) or asked["size"] > 10_000_000 else "regular",
                "shouldIgnore": False,
                "oid": files[asked["path"]].blob if asked["path"] in files else None,
            }
            for asked in json.loads(body)["files"]
        ]
    }


def batch(hub: LoopbackHub, token: str, body: bytes, query: Query, name: str) -> Any:
    _may_write(token)
    _found(hub, token, name)
    objects = []
    for asked in json.loads(body)["objects"]:
        one = {"oid": asked["oid"], "size": asked["size"]}
        if asked["oid"] not in hub.objects:
            one["actions"] = {
                "upload": {"href": f"{hub.url}/lfs/{asked['oid']}"},
                "verify": {"href": f"{hub.url}/lfs-verify"},
            }
        objects.append(one)
    return {"transfer": "basic", "objects": objects}


def take_object(hub: LoopbackHub, token: str, body: bytes, query: Query, oid: str) -> Any:
    if hashlib.sha256(body).hexdigest() != oid:
        raise _Refused(400, "the content has another digest")
    hub.objects[oid] = body
    return {}


def verify_object(hub: LoopbackHub, token: str, body: bytes, query: Query) -> Any:
    asked = json.loads(body)
    if len(hub.objects.get(asked["oid"], b"")) != asked["size"]:
        raise _Refused(404, "no such object")
    return {}


def commit(hub: LoopbackHub, token: str, body: bytes, query: Query, name: str, revision: str) -> Any:
    _may_write(token)
    repository = _found(hub, token, name)
    if hub.meanwhile is not None:
        hub.meanwhile()
        hub.meanwhile = None
    header, *operations = (json.loads(line) for line in body.splitlines())
    if header["value"].get("parentCommit", repository.head) != repository.head:
        raise _Refused(412, "A commit has happened since. Please refresh and try again.")
    files = dict(repository.commits[repository.head])
    for operation in operations:
        value = operation["value"]
        match operation["key"]:
            case "file":
                files[value["path"]] = Stored(base64.b64decode(value["content"]), large=False)
            case "lfsFile":
                if value["oid"] not in hub.objects:
                    raise _Refused(400, f"no such object: {value['oid']}")
                files[value["path"]] = Stored(hub.objects[value["oid"]], large=True)
            case "deletedFile":
                if value["path"] not in files:
                    raise _Refused(404, "A file with this name doesn't exist", "EntryNotFound")
                del files[value["path"]]
            case other:
                raise _Refused(400, f"no such operation: {other}")
    made = repository.add(files, header["value"]["summary"])
    return {"success": True, "commitOid": made, "commitUrl": f"{hub.url}/datasets/{name}/commit/{made}"}


def tag(hub: LoopbackHub, token: str, body: bytes, query: Query, name: str, revision: str) -> Any:
    _may_write(token)
    asked = json.loads(body)["tag"]
    repository = _found(hub, token, name)
    if asked in repository.tags:
        raise _Refused(409, "Tag reference exists already")
    repository.tags[asked] = _held(hub, token, name, revision)[0]
    return {}


def settings(hub: LoopbackHub, token: str, body: bytes, query: Query, name: str) -> Any:
    _may_write(token)
    _found(hub, token, name).private = json.loads(body)["visibility"] == "private"
    return {}


def paths_info(hub: LoopbackHub, token: str, body: bytes, query: Query, name: str, revision: str) -> Any:
    files = _held(hub, token, name, revision)[1]
    asked = json.loads(body)["paths"] if body.startswith(b"{") else parse_qs(body.decode())["paths"]
    folders = {path.rpartition("/")[0] for path in files} - {""}
    return [
        *(files[path].listed(path) for path in asked if path in files),
        *({"type": "directory", "path": path, "oid": "0" * 40} for path in asked if path in folders),
    ]


def give(hub: LoopbackHub, token: str, body: bytes, query: Query, name: str, revision: str, path: str) -> Any:
    made, files = _held(hub, token, name, revision)
    if unquote(path) not in files:
        raise _Refused(404, "Entry not found", "EntryNotFound")
    file = files[unquote(path)]
    etag = file.sha256 if file.large else file.blob
    return file.content, {"ETag": f'"{etag}"', "X-Repo-Commit": made, "Content-Type": "application/octet-stream"}


def _roads() -> Iterator[tuple[tuple[str, ...], str, Act]]:
    data = rf"/api/datasets/{NAME}"
    yield ("GET",), r"/api/whoami-v2", who_am_i
    yield ("POST",), r"/api/repos/create", create
    yield ("POST",), r"/api/validate-yaml", validate_card
    yield ("GET",), data, describe
    yield ("GET",), rf"{data}/revision/([^/]+)", describe
    yield ("GET",), rf"{data}/tree/([^/]+)", tree
    yield ("GET",), rf"{data}/tree/([^/]+)/(.+)", tree
    yield ("GET",), rf"{data}/refs", refs
    yield ("POST",), rf"{data}/preupload/([^/]+)", ask_modes
    yield ("POST",), rf"{data}/commit/([^/]+)", commit
    yield ("POST",), rf"{data}/tag/([^/]+)", tag
    yield ("PUT",), rf"{data}/settings", settings
    yield ("POST",), rf"{data}/paths-info/([^/]+)", paths_info
    yield ("POST",), rf"/datasets/{NAME}\.git/info/lfs/objects/batch", batch
    yield ("PUT",), r"/lfs/([0-9a-f]{64})", take_object
    yield ("POST",), r"/lfs-verify", verify_object
    yield ("GET", "HEAD"), rf"/datasets/{NAME}/resolve/([^/]+)/(.+)", give


ROADS = tuple(_roads())
