"""Inspect's logs: `.eval`, a zip with a file for each sample, and `.json` with all of them.

A sample is a trajectory as it stands: its messages say which of them a model generated.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stepdown.builder.common.reading import parse_json
from stepdown.builder.errors import BadInput
from stepdown.builder.traces.calls import LeftOut, grown, role_of, said, step_of
from stepdown.builder.traces.chains import Trajectory
from stepdown.builder.traces.documents import Record, at

SUFFIX = ".eval"
_LARGEST_PART = 1 << 30
"""Bytes of one file of a log, unpacked."""
_REFERENCE = "attachment://"
_DATED = re.compile(r"[-@:]\d[\d-]*")
"""What a provider puts behind the name of a model: the day of its version."""


def is_one(value: Any) -> bool:
    """Whether a record is a whole log."""
    return isinstance(value, Mapping) and isinstance(value.get("eval"), Mapping) and "status" in value


def trajectories(record: Record) -> Iterator[Trajectory | LeftOut]:
    """The samples of a log in JSON; what can be no seed stands in its place."""
    for sample in record.value.get("samples") or ():
        yield _read(sample, str(at(record.value, "eval", "model") or ""))


def packed_trajectories(path: Path) -> Iterator[Trajectory | LeftOut]:
    """The samples of an `.eval` file, one in memory at a time. Raises BadInput."""
    try:
        with zipfile.ZipFile(path) as log:
            names = log.namelist()
            head = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
            if head is None:
                raise BadInput("no log of inspect_ai: it has no header.json", file=path)
            model = str(at(_part(log, head, path), "eval", "model") or "")
            for name in sorted(name for name in names if name.startswith("samples/")):
                folder, _, last = name.removeprefix("samples/").rpartition("/")
                if not folder and last.endswith(".json"):
                    yield _read(_part(log, name, path), model)
                elif folder and last == "sample.json":
                    yield _read(_in_pieces(log, name, names, path), model)
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise BadInput(f"no log of inspect_ai: {error}", file=path) from None
    except NotImplementedError:
        convert = "`inspect log convert --to json --output-dir FOLDER FILE` makes one that is read"
        raise BadInput(f"packed in a way that this Python can not unpack: {convert}", file=path) from None


def _part(log: zipfile.ZipFile, name: str, path: Path) -> Any:
    if log.getinfo(name).file_size > _LARGEST_PART:
        raise BadInput(f"{name} has more than {_LARGEST_PART} bytes", file=path)
    try:
        return parse_json(log.read(name), path)
    except BadInput as error:
        raise BadInput(f"{error.problem}", file=path, field=name) from None


def _in_pieces(log: zipfile.ZipFile, shell: str, names: list[str], path: Path) -> Any:
    """A large sample, whose messages and attachments stand in files of their own."""
    folder = shell.removesuffix("sample.json")

    def sequence(kind: str) -> list[Any]:
        pieces = [name for name in names if name.startswith(f"{folder}{kind}/") and name.endswith(".json")]
        numbered = [name for name in pieces if name.rpartition("/")[2].removesuffix(".json").isdecimal()]
        ordered = sorted(numbered, key=lambda name: int(name.rpartition("/")[2].removesuffix(".json")))
        return [item for name in ordered for item in _part(log, name, path)]

    sample = _part(log, shell, path)
    attachments = {str(place): text for place, text in enumerate(sequence("attachments"))}
    return {**sample, "messages": sequence("messages"), "attachments": attachments}


def _read(sample: Any, model: str) -> Trajectory | LeftOut:
    try:
        return _trajectory(sample, model)
    except LeftOut as reason:
        return reason


def _trajectory(sample: Any, evaluated: str) -> Trajectory:
    if not isinstance(sample, Mapping) or not isinstance(sample.get("messages"), list):
        raise LeftOut("samples without messages")
    if sample.get("error"):
        raise LeftOut("samples that ended with an error")
    if sample.get("limit"):
        raise LeftOut("samples that were stopped at a limit")
    texts = sample.get("attachments")
    messages = [_chat(one, texts if isinstance(texts, Mapping) else {}) for one in sample["messages"]]
    answers = [message for message in messages if message["role"] == "assistant" and message["made"]]
    if not answers:
        raise LeftOut("samples in which no model made a step")
    opening, asked = b"", b""
    for message in messages:
        if message["role"] == "assistant":
            break
        if message["role"] != "system":
            opening = grown(opening, said(message))
            asked = grown(b"", said(message))
    models = tuple(dict.fromkeys(_model(message["model"], evaluated) for message in answers))
    task = str(sample.get("id") if sample.get("id") is not None else "")
    steps = tuple(step_of(message) for message in answers)
    return Trajectory(f"{task}/{sample.get('epoch')}", task, opening, asked, models, steps)


def _model(said_by: str, evaluated: str) -> str:
    """The model of a message: by the name that the evaluation gives it, where it is the evaluated one.

    A provider answers under a dated name of its own, while another model of the same evaluation is another name.
    """
    asked = evaluated.rpartition("/")[2]
    is_the_same = said_by in ("", evaluated, asked) or bool(asked and _DATED.fullmatch(said_by.removeprefix(asked)))
    return evaluated if is_the_same else said_by


def _chat(message: Any, texts: Mapping[str, Any]) -> dict[str, Any]:
    """A message in the form of the chat API, with what was put aside for its length."""
    if not isinstance(message, Mapping):
        raise LeftOut("samples whose messages can not be read")
    filled = _filled(message, texts)
    made: dict[str, Any] = {
        "role": role_of(filled),
        "content": filled.get("content"),
        # An answer that the task or its solver wrote in advance is no step.
        "made": filled.get("source") in (None, "generate"),
        "model": str(filled.get("model") or ""),
    }
    if made["role"] == "assistant" and filled.get("tool_calls"):
        made["tool_calls"] = [
            {"name": call.get("function"), "arguments": call.get("arguments")}
            for call in filled["tool_calls"]
            if isinstance(call, Mapping)
        ]
    return made


def _filled(value: Any, texts: Mapping[str, Any]) -> Any:
    """A value with the texts that it refers to in their places."""
    if not texts or _REFERENCE not in json.dumps(value, default=str):
        return value
    if isinstance(value, str):
        return texts.get(value.removeprefix(_REFERENCE), value) if value.startswith(_REFERENCE) else value
    if isinstance(value, list):
        return [_filled(one, texts) for one in value]
    if isinstance(value, Mapping):
        return {name: _filled(one, texts) for name, one in value.items()}
    return value
