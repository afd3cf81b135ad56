"""A release on the Hugging Face Hub: what would go there, and the pushing of it.

Everything goes in one commit, so a repository never shows half a release, and only what is not there yet is sent. The
upload itself is `huggingface_hub`'s.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from stepdown.builder.common.keys import key_in
from stepdown.builder.common.secrets import SECRETS
from stepdown.builder.common.text import printable
from stepdown.builder.errors import BadInput, StepdownError
from stepdown.releases.files import STRANGERS, is_name, list_files, sha256_of
from stepdown.releases.hubfiles import ThereFile, is_same
from stepdown.releases.layout import DATA, MANIFEST, ROWS, Manifest, read_manifest

ENDPOINT_VARIABLE, TOKEN_VARIABLE = "HF_ENDPOINT", "HF_TOKEN"
_HUB = "https://huggingface.co"
_PART = r"\w(?:[\w.-]{0,94}\w)?"
_REPOSITORY = re.compile(f"{_PART}/{_PART}", re.ASCII)
_TAG = re.compile(r"[A-Za-z0-9](?:[\w.+-]*[\w+-])?", re.ASCII)
_UNITS = (("kB", 1e3), ("MB", 1e6), ("GB", 1e9))
_NAMED = 5
"""Files named at most in a message."""


class PushStopped(StepdownError):
    """The Hub or the way to it failed: what has arrived stays there, and the same command goes on. Exit code 3."""


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    """A file of the release as it would stand in the repository."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Shipment:
    """What would go to the Hub, and where."""

    release: Path
    repository: str
    """ORG/NAME, of the kind `dataset`."""
    public: bool
    message: str
    """Of the commit."""
    tag: str | None
    """The release's version; None where no tag can be called so."""
    files: tuple[OutgoingFile, ...]
    manifest: Manifest

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def page(self) -> str:
        return page_of(self.repository)


@dataclass(frozen=True, slots=True)
class Arrived:
    """What a push came to."""

    commit: str
    """That holds the release."""
    sent: int
    """Files that were not there yet."""
    removed: tuple[str, ...]
    """Files of an earlier version that this one has not."""
    private: bool


def page_of(repository: str) -> str:
    """Where a repository's page is."""
    return f"{hub_address()}/datasets/{repository}"


def hub_address() -> str:
    """The Hub, or the one that the environment names in its place. Raises BadInput where that is no address."""
    address = (os.environ.get(ENDPOINT_VARIABLE) or _HUB).rstrip("/")
    try:
        parts = urlsplit(address)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        sound = False
    if not sound:
        raise BadInput("must be an http or https address", field=ENDPOINT_VARIABLE)
    if "@" in parts.netloc:  # it would be shown, and stand in the release as part of its page's address
        raise BadInput(f"a key does not belong into an address: {TOKEN_VARIABLE} holds it", field=ENDPOINT_VARIABLE)
    return address


def check_repository(repository: str, field: str | None = None) -> str:
    """The name, where the Hub takes it. Raises BadInput.

    >>> check_repository("example-lab/step-tiers")
    'example-lab/step-tiers'
    """
    sound = _REPOSITORY.fullmatch(repository) and not re.search(r"--|\.\.|\.git$", repository)
    if not sound:
        raise BadInput(
            f"{repository[:200]!r} is no name of a repository: ORG/NAME, each of letters, digits, '-', '_' and '.'",
            field=field,
        )
    return repository


def prepare(release: Path, repository: str, *, public: bool = False, message: str = "") -> Shipment:
    """What a push of a release that was verified would send. Reads the folder only. Raises BadInput."""
    check_repository(repository)
    if key := key_in(message):
        raise BadInput(f"holds what looks like {key}", field="--message")
    manifest = read_manifest(release)
    files = []
    for name, problem in list_files(release):
        if problem is not None:
            raise BadInput(problem, file=release / name)
        sha256, size = sha256_of(release / name)
        files.append(OutgoingFile(name, size, sha256))
    instances = sum(manifest.instances.values())
    told = message or f"{manifest.name} {manifest.version}: {manifest.rows} rows of {instances} instances"
    tag = manifest.version if _TAG.fullmatch(manifest.version) and ".." not in manifest.version else None
    return Shipment(release, repository, public, told, tag, tuple(files), manifest)


def push(shipment: Shipment, tell: Callable[[str], None]) -> Arrived:
    """Bring the release to the Hub: make the repository where there is none, send what it lacks, tag it.

    `tell` is told what goes on. Raises BadInput where a person must mend something, PushStopped where the same command
    later may do.
    """
    with _in_plain_words(shipment.repository):
        return _Push(shipment, tell).run()


class _Push:
    """One push, with the Hub's client."""

    def __init__(self, shipment: Shipment, tell: Callable[[str], None]) -> None:
        from huggingface_hub import HfApi

        self._shipment, self._tell = shipment, tell
        self._repository = shipment.repository
        self._hub = HfApi(endpoint=hub_address(), library_name="stepdown")
        self._kind = {"repo_id": shipment.repository, "repo_type": "dataset"}

    def run(self) -> Arrived:
        self._hub.whoami()  # a token that is missing or wrong is told before anything else
        head, private = self._open()
        there = self._list_files(head) if head else {}
        tags = self._tags()
        tag = self._shipment.tag
        if tag is not None and tag in tags:
            self._check_tag(tag, tags[tag])
            return self._shown(Arrived(tags[tag], 0, (), private))
        self._check_room(there)
        lacking = [file for file in self._shipment.files if not self._has(there, file)]
        names = {file.name for file in self._shipment.files}
        stale = tuple(sorted(name for name in there if is_name(name) and name not in names))
        commit = self._commit(lacking, stale, head) if lacking or stale else head
        if tag is not None:
            self._hub.create_tag(**self._kind, tag=tag, revision=commit)
        return self._shown(Arrived(commit, len(lacking), stale, private))

    def _open(self) -> tuple[str, bool]:
        """The newest commit of the repository, and whether it is private. It is made where there is none."""
        from huggingface_hub.errors import RepositoryNotFoundError

        try:
            found = self._hub.dataset_info(self._repository)
        except RepositoryNotFoundError:
            self._tell(f"making {self._repository}, {'public' if self._shipment.public else 'private'}")
            self._hub.create_repo(**self._kind, private=not self._shipment.public)
            found = self._hub.dataset_info(self._repository)
        return str(found.sha or ""), bool(found.private)

    def _list_files(self, revision: str) -> Mapping[str, ThereFile]:
        listed = self._hub.list_repo_tree(**self._kind, revision=revision, recursive=True)
        files = [entry for entry in listed if hasattr(entry, "blob_id")]
        return {
            file.path: ThereFile(int(file.size), str(file.blob_id), file.lfs.sha256 if file.lfs else None)
            for file in files
            if file.path not in STRANGERS
        }

    def _tags(self) -> Mapping[str, str]:
        return {tag.name: tag.target_commit for tag in self._hub.list_repo_refs(**self._kind).tags}

    def _has(self, there: Mapping[str, ThereFile], file: OutgoingFile) -> bool:
        found = there.get(file.name)
        return found is not None and is_same(found, self._shipment.release / file.name, file.bytes, file.sha256)

    def _check_tag(self, tag: str, commit: str) -> None:
        """A version that is there must be this release: nobody who loaded it may find another one under its name."""
        there = self._list_files(commit)
        if len(there) != len(self._shipment.files) or not all(self._has(there, file) for file in self._shipment.files):
            raise BadInput(f"{self._repository} has a version {tag} with other content: publish with another --version")

    def _check_room(self, there: Mapping[str, ThereFile]) -> None:
        """The repository must be new, or hold earlier versions of this release. Raises BadInput."""
        foreign = sorted(name for name in there if not is_name(name))
        if foreign:
            shown = ", ".join(foreign[:_NAMED]) + ", ..." * (len(foreign) > _NAMED)
            raise BadInput(f"{self._repository} holds other files: {printable(shown)}: push to another repository")
        if MANIFEST not in there:
            if ROWS in there or any(name.startswith(f"{DATA}/") for name in there):
                raise BadInput(f"{self._repository} holds another data set: push to another repository")
            return
        with tempfile.TemporaryDirectory() as folder:
            self._hub.hf_hub_download(**self._kind, filename=MANIFEST, local_dir=folder)
            try:
                name = read_manifest(Path(folder)).name
            except BadInput:
                raise BadInput(
                    f"{self._repository} has a {MANIFEST} that is no release's: push to another repository"
                ) from None
        if name != self._shipment.manifest.name:
            raise BadInput(f"{self._repository} holds the release {name[:200]!r}: push to another repository")

    def _commit(self, lacking: list[OutgoingFile], stale: tuple[str, ...], head: str) -> str:
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        size = in_bytes(sum(file.bytes for file in lacking))
        self._tell(f"sending {len(lacking)} of {len(self._shipment.files)} files, {size}, to {self._repository}")
        release = self._shipment.release
        done = self._hub.create_commit(
            **self._kind,
            operations=[
                *(CommitOperationAdd(path_in_repo=file.name, path_or_fileobj=release / file.name) for file in lacking),
                *(CommitOperationDelete(path_in_repo=name) for name in stale),
            ],
            commit_message=self._shipment.message,
            parent_commit=head or None,  # refused where somebody has pushed meanwhile
        )
        return str(done.oid)

    def _shown(self, arrived: Arrived) -> Arrived:
        """Make the repository public where that was asked for: last, once all is there."""
        if not self._shipment.public or not arrived.private:
            return arrived
        self._hub.update_repo_settings(**self._kind, private=False)
        return Arrived(arrived.commit, arrived.sent, arrived.removed, private=False)


def in_bytes(size: int) -> str:
    """A size for people.

    >>> in_bytes(999), in_bytes(1_234_567), in_bytes(23_000_000_000)
    ('999 B', '1.2 MB', '23.0 GB')
    """
    if size < 1000:
        return f"{size} B"
    unit, factor = next((unit, factor) for unit, factor in _UNITS if size < 999.95 * factor or unit == "GB")
    return f"{size / factor:.1f} {unit}"


@contextmanager
def _in_plain_words(repository: str) -> Iterator[None]:
    """What the client raises, as one line each: BadInput where a person must act, PushStopped where time may do."""
    from huggingface_hub.errors import HfHubHTTPError, HTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    try:
        yield
    except LocalTokenNotFoundError:
        raise BadInput(f"no token for the Hub: `hf auth login`, or set {TOKEN_VARIABLE}") from None
    except OfflineModeIsEnabled:
        raise BadInput("HF_HUB_OFFLINE is set: nothing can be sent") from None
    except HfHubHTTPError as error:
        raise _refusal(repository, error.response.status_code, error.server_message or "") from None
    except (JSONDecodeError, LookupError, TypeError, AttributeError, RecursionError) as error:
        told = SECRETS.line(f"{type(error).__name__}: {error}")
        raise BadInput(f"{hub_address()} does not answer as the Hub does: {told}") from None
    except (HTTPError, OSError, RuntimeError) as error:
        # Of an upload in several threads the client tells only that it failed; what happened is the cause.
        cause = error.__cause__ or error
        if isinstance(cause, HfHubHTTPError):
            raise _refusal(repository, cause.response.status_code, cause.server_message or "") from None
        what = "the upload stopped" if isinstance(cause, RuntimeError) else "the Hub can not be reached"
        raise PushStopped(f"{what}: {_line(cause)}; the same command goes on") from None
    except ValueError as error:
        raise BadInput(f"the Hub does not take it: {_line(error)}") from None


def _refusal(repository: str, status: int, said: str) -> StepdownError:
    words = f": {SECRETS.line(said)}" if said else ""
    if status == 401:
        return BadInput(f"the Hub does not know this token (401){words}: `hf auth login`, or set {TOKEN_VARIABLE}")
    if status == 403:
        return BadInput(f"this token may not write to {repository} (403){words}")
    if status in (409, 412):  # somebody made the repository or the tag first, or a commit
        return PushStopped(f"{repository} was changed meanwhile ({status}){words}: run the same command again")
    if status == 429 or status >= 500:
        return PushStopped(f"the Hub answers {status}{words}; the same command goes on")
    return BadInput(f"the Hub answers {status}{words}")


def _line(error: Any) -> str:
    return SECRETS.line(str(error) or type(error).__name__)
