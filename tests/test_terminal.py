"""What stands on a real terminal, where progress is redrawn."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from tests.conftest import ROOT, Shop
from tests.provider import Provider, Request
from tests.workshop import ABILITIES, config


def _slowly(ability: Any, request: Request) -> Any:
    return replace(ability(request), delay=0.2)


def test_on_a_narrow_terminal_the_way_to_go_on_is_shown_whole(shop: Shop) -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    with Provider({name: partial(_slowly, ability) for name, ability in ABILITIES.items()}) as provider:
        path = shop.write(config(provider.url, [[0, 1, 2]] * 9))
        command = [sys.executable, "-m", "stepdown", "build", str(path), "--run", str(shop.run)]
        environment = {**os.environ, "TERM": "xterm"}
        process = subprocess.Popen(command, cwd=ROOT, stdout=slave, stderr=slave, env=environment)
        os.close(slave)
        shown = b""
        while not re.search(rb" [1-9][0-9]* calls", shown):  # how many are shown first depends on when it is drawn
            shown += os.read(master, 1 << 16)
        process.send_signal(signal.SIGINT)
        with suppress(OSError):  # the other end is closed
            while piece := os.read(master, 1 << 16):
                shown += piece
        assert process.wait() == 130
    os.close(master)
    # A redrawn line erases the one before it, so the hint has to stand on lines of its own.
    drawn = [line.rpartition("\x1b[2K")[2] for line in shown.decode().splitlines()]
    assert (
        f"stopping after the calls in hand (once more to stop at once); go on with: stepdown resume {shop.run}" in drawn
    )
    after = shown.decode().partition(f"stepdown resume {shop.run}")[2]
    assert not after.startswith(("\r\n\r\x1b[2K\x1b[1A", "\r\x1b[2K\x1b[1A")), "the next drawing erases a line of it"
