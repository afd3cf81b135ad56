"""Small models that run on this machine: weight files from installed packages, served by llama.cpp on loopback."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import secrets
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepdown.builder.common.extras import how_to_install
from stepdown.builder.common.files import whole_file
from stepdown.builder.config.pool import Model, Weights
from stepdown.builder.errors import BadInput

_INSTALL = how_to_install("local")

_SET_FOLDER = "set XDG_CACHE_HOME to a folder that can be written, with room for them"

_checked: dict[tuple[str, int, int], str] = {}
"""Digests by path, size and time of change, so that a file is read only once in a process."""


@dataclass(frozen=True, slots=True)
class LocalAddress:
    """Where a local model answers. Without `key` no other program or web page on this machine can ask it."""

    url: str
    key: str


class Runtime:
    """One llama.cpp server for each model, started at its first use. Thread-safe.

    With these settings a model gives the same text for the same prompt: after a restart, with requests waiting and
    beside other servers. With a prompt cache, flash attention, more slots or more threads it sometimes differs.
    """

    def __init__(self) -> None:
        self._servers: dict[str, tuple[Any, LocalAddress]] = {}
        self._lock = threading.Lock()

    def start(self, model: Model, embeds: bool = False) -> LocalAddress:
        """Start the server of `model`, if it is not running; where it answers: with texts or, where it `embeds`, with
        the mean of a text's vectors. Raises BadInput: not installed.
        """
        key = f"{model.identity} embeds" if embeds else model.identity
        with self._lock:
            if key not in self._servers:
                self._servers[key] = _start_server(model, embeds)
            return self._servers[key][1]

    def close(self) -> None:
        """Stop the servers. No request may be under way: a server that is answering blocks until its client is gone."""
        with self._lock:
            self._servers.clear()


def check(model: Model) -> str:
    """A line that says where a local model's weights are. Raises BadInput, which says what to install."""
    _load_runtime()
    path = locate_weights(model)
    return f"{model.name}: {path} ({path.stat().st_size / 1e6:.0f} MB, digest as given)"


def locate_weights(model: Model) -> Path:
    """The model's weights in one file, joined where needed. Raises BadInput: not installed, or of another digest."""
    assert model.weights is not None
    weights = model.weights
    parts = _parts(model.name, weights)
    path = parts[0] if len(parts) == 1 else _join(parts, weights.sha256)
    if _read_sha256(path) != weights.sha256:
        raise BadInput(f"{path} is not the file with the digest {weights.sha256}", field=f"{model.name}.weights.sha256")
    return path


def _parts(name: str, weights: Weights) -> list[Path]:
    packages = (weights.package,) if isinstance(weights.package, str) else weights.package
    folders = [Path()] if packages is None else [_folder(name, package) for package in packages]
    found = [path for folder in folders for path in _matching(folder, weights.file)]
    if not found:
        problem = f"there is no file {weights.file}"
        if packages is not None:
            problem += f" in the package {packages[0]}: {_INSTALL}"
        raise BadInput(problem, field=f"{name}.weights.file")
    return found


def _folder(name: str, package: str) -> Path:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise BadInput(f"{package} is not installed: {_INSTALL}", field=f"{name}.weights.package")
    return Path(next(iter(spec.submodule_search_locations)))


def _matching(folder: Path, file: str) -> list[Path]:
    path = folder / Path(file).expanduser()
    if "*" not in path.name:
        return [path] if path.is_file() else []
    return sorted(found for found in path.parent.glob(path.name) if found.is_file())


def _join(parts: Sequence[Path], sha256: str) -> Path:
    """Join the parts in one file in the user's cache folder. Raises BadInput where that cannot be written."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stepdown" / "weights"
    except RuntimeError:
        raise BadInput(f"there is no home folder to join weights in: {_SET_FOLDER}") from None
    try:
        return _join_in(folder, parts, sha256)
    except OSError as error:
        # One of the parts may be what cannot be read; the error names it.
        place = f"{folder}: {error.filename}" if error.filename not in (None, str(folder)) else str(folder)
        raise BadInput(f"{place}: {error.strerror or error}; weights are joined there: {_SET_FOLDER}") from None


def _join_in(folder: Path, parts: Sequence[Path], sha256: str) -> Path:
    """Write the file whole or not at all, even where several processes do it at once."""
    target = folder / f"{sha256}.gguf"
    if target.is_file() and _read_sha256(target) == sha256:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(target, durable=True, shared=True) as whole:
        for part in parts:
            with part.open("rb") as source:
                shutil.copyfileobj(source, whole, 1 << 20)
    return target


def _read_sha256(path: Path) -> str:
    state = path.stat()
    key = (str(path), state.st_size, state.st_mtime_ns)
    if key not in _checked:
        with path.open("rb") as file:
            _checked[key] = hashlib.file_digest(file, "sha256").hexdigest()
    return _checked[key]


def _load_runtime() -> Any:
    try:
        import xllamacpp  # a native library: only where a local model is really used
    except ModuleNotFoundError:
        raise BadInput(f"local models need xllamacpp: {_INSTALL}") from None
    except ImportError as error:  # a library of the system that it is linked against: what Debian calls libgomp1
        raise BadInput(f"xllamacpp can not be loaded: {error}: install the system's package that has it") from None
    return xllamacpp


def _start_server(model: Model, embeds: bool) -> tuple[Any, LocalAddress]:
    runtime = _load_runtime()
    path = locate_weights(model)
    assert model.weights is not None
    key = secrets.token_hex(16)
    params = runtime.CommonParams()
    params.model.path = str(path)
    params.model_alias = {model.name}
    params.api_keys = [key]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = model.weights.n_ctx
    params.n_parallel = 1
    params.cache_prompt = False
    params.flash_attn_type = runtime.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.warmup = False
    params.use_jinja = True
    params.ui = False
    params.verbosity = 0
    if embeds:
        params.embedding = True
        params.pooling_type = runtime.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
        params.n_batch = params.n_ubatch = model.weights.n_ctx  # a text is embedded whole
    try:
        server = runtime.Server(params)
    except Exception as error:
        raise BadInput(f"llama.cpp does not load {path}: {error}", field=f"{model.name}.weights") from None
    return server, LocalAddress(server.listening_address, key)
