"""Agent programs that many people run, as options of `harness: agent`: `preset: NAME`.

A preset is a file of data beside this one: the program with its pinned version, and the options that it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from stepdown.builder.config.validation import Strict
from stepdown.harnesses.agent.program import Ended

_MERGED = ("environment", "files", "home_files", "limits")
"""Options of which a config may give a part; of all others its own stands in the preset's place."""


class Pinned(Strict):
    """The program of a preset, in the one version for which the preset was made."""

    name: str
    version: str
    ask: str
    """The shell's words that make it print its version."""
    install: str
    """The command that installs it."""

    def problem(self, ended: Ended) -> str | None:
        """What is wrong with the program that answered so to `ask`; None for the right one.

        >>> pinned = Pinned(name="tool", version="1.2.3", ask="tool --version", install="get tool@1.2.3")
        >>> pinned.problem(Ended(0, output=b"This is tool v1.2.3."))
        >>> pinned.problem(Ended(0, output=b"tool 1.2.30"))
        'the preset is made for tool 1.2.3, and here is tool 1.2.30: get tool@1.2.3'
        >>> pinned.problem(Ended(127, output=b"sh: tool: not found"))
        'tool 1.2.3 is not here (exit code 127: sh: tool: not found): get tool@1.2.3'
        """
        said = ended.output.decode(errors="replace").strip()
        if ended.code != 0:
            return f"{self.name} {self.version} is not here ({ended.told()}): {self.install}"
        if re.search(rf"(?<![\d.]){re.escape(self.version)}(?!\.?\d)", said) is None:
            return f"the preset is made for {self.name} {self.version}, and here is {said[:80]}: {self.install}"
        return None


class Preset(Strict):
    """A file of this folder."""

    program: Pinned
    options: dict[str, Any] = Field(default_factory=dict)


def preset_names() -> tuple[str, ...]:
    """All presets."""
    return tuple(sorted(file.stem for file in Path(__file__).parent.glob("*.yaml")))


@cache
def preset_of(name: str) -> Preset:
    """The preset of this name. Raises ValueError where there is none."""
    if name not in preset_names():
        raise ValueError(f"no preset {name!r}; there are {', '.join(preset_names())}")
    text = (Path(__file__).parent / f"{name}.yaml").read_text(encoding="utf-8")
    return Preset.model_validate(yaml.safe_load(text))


def with_preset(options: Any) -> Any:
    """Options with those of the preset that they name beneath them. Raises ValueError for an unknown one."""
    name = options.get("preset") if isinstance(options, Mapping) else None
    if not isinstance(name, str):
        return options
    preset = preset_of(name).options
    parts = {key: {**preset[key], **options[key]} for key in _MERGED if _both_have_parts(preset, options, key)}
    return {**preset, **options, **parts}


def _both_have_parts(preset: Mapping[str, Any], options: Mapping[str, Any], key: str) -> bool:
    return isinstance(preset.get(key), Mapping) and isinstance(options.get(key), Mapping)
