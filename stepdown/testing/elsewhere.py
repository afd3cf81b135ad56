"""A play in a fresh interpreter: what must be the same in every process."""

from __future__ import annotations

import base64
import json
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from stepdown.builder.records import Instance, Response, Ruling
from stepdown.harnesses.base import Harness
from stepdown.testing.playing import Play, played


def is_named(made: type[Harness]) -> bool:
    """Whether another process can import the class by its name."""
    home = sys.modules[made.__module__]
    return made.__module__ != "__main__" and getattr(home, made.__qualname__, None) is made


def told_by(harness: Harness, play: Play) -> dict[str, Any]:
    """What must be the same in every process, by what it is called in a breach."""
    end = play.end
    return {
        "`version`": harness.version,
        "a prefix": [prefix.canonical for prefix in play.prefixes],
        "the ruling": [end.verdict.value, end.reason] if isinstance(end, Ruling) else end,
    }


def tell(order: Mapping[str, Any]) -> None:
    """What the same harness tells in this process: run by `told_in_a_fresh_interpreter`."""
    module, name = order["class"]
    harness: Harness = getattr(import_module(module), name)(**order["options"])
    harness.keep_in(Path(order["kept"]))
    instance = pickle.loads(base64.b64decode(order["instance"]))  # noqa: S301 - from the process that started this one
    play = played(harness, instance, [Response.from_json(answer) for answer in order["script"]])
    print(json.dumps(told_by(harness, play)))


def told_in_a_fresh_interpreter(
    made: type[Harness], options: Mapping[str, Any], kept: Path, instance: Instance, script: Sequence[Response]
) -> dict[str, Any]:
    """The same play as another process tells of it, the instance carried there by a pickle. Raises RuntimeError."""
    order = {
        "path": sys.path,
        "class": [made.__module__, made.__qualname__],
        "options": options,
        "kept": str(kept),
        "instance": base64.b64encode(pickle.dumps(instance)).decode(),
        "script": [response.to_json() for response in script],
    }
    code = "import json, sys; order = json.load(sys.stdin); sys.path[:] = order['path']\n"
    code += "from stepdown.testing.elsewhere import tell; tell(order)"
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code], input=json.dumps(order, default=str), capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it ended without a word"])[-1])
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told
