"""Agent programs from npm, in the versions that presets name, in a folder that git ignores."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

from stepdown.harnesses.agent.presets import preset_of
from tests.conftest import ROOT

CACHE = ROOT / ".cache"
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
"""Debian's list."""


def installed_opencode() -> Path:
    """The folder with the program `opencode`."""
    pinned = preset_of("opencode").program
    folder = CACHE / f"opencode-{pinned.version}"
    folder.mkdir(parents=True, exist_ok=True)
    bin_folder = folder / "node_modules" / ".bin"
    # Several test processes may want it at once.
    with (folder / "installing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _says(bin_folder / "opencode", pinned.version):
            command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder)]
            # npm believes its own list of authorities alone; the machine may know one more.
            known = {"NODE_EXTRA_CA_CERTS": str(AUTHORITIES)} if AUTHORITIES.exists() else {}
            program = [*command, f"opencode-ai@{pinned.version}"]
            subprocess.run(program, check=True, capture_output=True, timeout=900, env={**known, **os.environ})
    return bin_folder


def _says(program: Path, version: str) -> bool:
    if not program.exists():
        return False
    asked = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=300, check=False)
    return asked.stdout.strip() == version
