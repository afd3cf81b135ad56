"""Whatever a model runs, the host does not notice, and what the model broke is told from what broke around it."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepdown.builder.errors import Lost
from stepdown.harnesses.containers.engine import Engine
from stepdown.harnesses.swebench.limits import MIB, Limits
from stepdown.harnesses.swebench.output import Frames, KeptOutput
from stepdown.harnesses.swebench.sandbox import Broken, Sandbox

docker_mark = pytest.mark.docker
LIMITS = Limits(memory_mib=256, cpus=0.5, processes=64, file_mib=64, disk_mib=128, disk_files=2000)
SECONDS = 20.0

Start = Callable[..., Sandbox]


@pytest.fixture
def start(image: str) -> Iterator[Start]:
    """Starts sandboxes that end with the test."""
    engine, made = Engine(), []

    def one(limits: Limits = LIMITS) -> Sandbox:
        made.append(Sandbox(engine, image, image, limits, "/testbed", {"PAGER": "cat"}))
        return made[-1]

    yield one
    for each in made:
        each.close()


def memory() -> float:
    """The most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# What a command comes to


@docker_mark
def test_output_and_errors_come_in_order_with_the_exit_code(start: Start) -> None:
    ran = start().run("echo one; echo two >&2; echo three; exit 7", SECONDS)
    assert (ran.output, ran.returncode, ran.exception) == (b"one\ntwo\nthree\n", 7, "")


@docker_mark
def test_bytes_come_as_they_are(start: Start) -> None:
    assert start().run(r"printf 'a\r\n\xff\x00b'", SECONDS).output == b"a\r\n\xff\x00b"


@docker_mark
def test_a_command_that_waits_for_input_sees_the_end_of_it(start: Start) -> None:
    box = start()
    assert box.run("cat; echo done", SECONDS).output == b"done\n"
    assert box.run("read -r line || echo none", SECONDS).output == b"none\n"


@docker_mark
def test_an_ordinary_126_or_127_is_a_result(start: Start) -> None:
    box = start()
    assert box.run("no-such-command", SECONDS).returncode == 127
    assert box.run("exit 126", SECONDS).returncode == 126


@docker_mark
def test_a_command_is_killed_inside_at_its_deadline(start: Start) -> None:
    box = start()
    ran = box.run("(while :; do date > /tmp/alive; sleep 0.1; done) & echo begun; sleep 60", 2)
    assert ran.output == b"begun\n"
    assert ran.returncode == -1
    assert ran.exception == "the command was killed after 2 seconds"
    assert box.running == ()
    first = box.run("cat /tmp/alive", SECONDS).output
    time.sleep(0.3)
    assert box.run("cat /tmp/alive", SECONDS).output == first


@docker_mark
def test_one_that_closes_its_output_and_goes_on_is_waited_for_and_killed_too(start: Start) -> None:
    box = start()
    assert box.run("exec >&- 2>&-; sleep 0.5; exit 3", SECONDS).returncode == 3
    assert box.run("exec >&- 2>&-; sleep 60", 2).returncode == -1


@docker_mark
def test_a_command_that_is_too_long_for_linux_is_a_result(start: Start) -> None:
    assert start().run("true " + "x" * 140_000, SECONDS).exception == "Argument list too long"


@docker_mark
def test_what_runs_on_is_known_and_stands_still_between_commands(start: Start) -> None:
    box = start()
    box.run("while :; do date +%N >> /tmp/ticks; sleep 0.05; done > /dev/null 2>&1 &", SECONDS)
    assert any("date" in process or "bash" in process for process in box.running)
    before = int(box.run("wc -l < /tmp/ticks", SECONDS).output)
    time.sleep(1.0)
    assert int(box.run("wc -l < /tmp/ticks", SECONDS).output) < before + 15


@docker_mark
def test_a_process_that_calls_itself_defunct_is_one_that_runs(start: Start) -> None:
    box = start()
    box.run("bash -c 'while :; do sleep 1; done' '<defunct>' > /dev/null 2>&1 &", SECONDS)
    assert any(process.endswith("<defunct>") for process in box.running)


# What a model may try


@docker_mark
def test_a_gigabyte_of_output_takes_no_memory_here(start: Start) -> None:
    before = memory()
    ran = start().run("head -c 1G /dev/zero | tr '\\0' x", SECONDS)
    assert ran.returncode == -1
    assert "more than 64 MiB" in ran.exception
    assert len(ran.output) < 1.2 * MIB
    assert memory() - before < 64


@docker_mark
def test_a_fork_bomb_stays_within_its_limit_and_others_go_on(start: Start) -> None:
    other, box = start(), start()
    ran = box.run(":(){ :|:& };: ; sleep 60", 4)
    assert ran.returncode != 0 or b"Resource temporarily unavailable" in ran.output
    assert other.run("echo alive", SECONDS).output == b"alive\n"
    assert len(box.running) <= 64


@docker_mark
def test_memory_beyond_the_limit_kills_the_command_and_not_the_container(start: Start) -> None:
    box = start()
    ran = box.run("python3 -c 'x = bytearray(10**9); print(len(x))'", SECONDS)
    assert ran.returncode == 137
    assert box.run("echo alive", SECONDS).output == b"alive\n"


@docker_mark
def test_there_is_no_network_and_nothing_of_the_host(start: Start, tmp_path: Path) -> None:
    box = start()
    reach = "import socket; socket.create_connection(('{}', 80), 2)"
    assert b"Network is unreachable" in box.run(f'python3 -c "{reach.format("192.0.2.1")}"', SECONDS).output
    assert box.run(f"mkdir -p {tmp_path} && touch {tmp_path}/mine /var/run/docker.sock", SECONDS).returncode == 0
    assert list(tmp_path.iterdir()) == []
    assert box.run("mount -t tmpfs none /mnt || mknod /tmp/disk b 8 0", SECONDS).returncode != 0
    assert box.run("echo 1 > /proc/sys/kernel/sysrq", SECONDS).returncode != 0
    assert box.run("cat /proc/1/cmdline", SECONDS).output.startswith(b"bash\0-c\0")
    assert box.run("hostname", SECONDS).output == b"sandbox\n"


@docker_mark
@pytest.mark.parametrize(
    "fill",
    [
        "for i in $(seq 100); do head -c 60M /dev/zero > f$i; done",
        "for i in $(seq 5000); do mkdir d$i; done; sleep 5",
        "for i in $(seq 400); do mkdir aaaaaaaaaaaaaaaaaaaa && cd aaaaaaaaaaaaaaaaaaaa; done",
    ],
    ids=["bytes", "files", "depth"],
)
def test_filling_the_disk_is_the_models_failure_and_is_stopped_in_time(start: Start, fill: str) -> None:
    disk = os.statvfs("/")
    before = disk.f_bavail * disk.f_frsize
    with pytest.raises(Broken, match="the files it wrote are over the limit"):
        start().run(fill, 60)
    disk = os.statvfs("/")
    assert before - disk.f_bavail * disk.f_frsize < 4 << 30


@docker_mark
def test_no_file_grows_beyond_its_limit_and_what_is_printed_by_pid_1_goes_nowhere(start: Start, docker: Any) -> None:
    box = start()
    assert box.run("head -c 100M /dev/zero > big; stat -c %s big", SECONDS).output.endswith(f"{64 * MIB}\n".encode())
    box.run("head -c 50M /dev/zero > /proc/1/fd/1", SECONDS)
    details = docker.api.inspect_container(box.id)
    assert details["HostConfig"]["LogConfig"]["Type"] == "none"
    assert not details["LogPath"]
    assert details["HostConfig"]["NetworkMode"] == "none"
    assert details["Mounts"] == []


@docker_mark
@pytest.mark.parametrize(
    "act",
    [
        "rm -f /bin/bash /usr/bin/bash",
        "rm -f /bin/sh /usr/bin/sh",
        "rm -rf /testbed",
        "rm -rf / --no-preserve-root 2> /dev/null",
    ],
)
def test_a_model_that_breaks_its_container_has_failed(start: Start, act: str) -> None:
    box = start()
    box.run(act, SECONDS)
    with pytest.raises(Broken, match="no command can be run in its container any more"):
        box.run("echo alive", SECONDS)


@docker_mark
def test_what_docker_says_of_a_command_is_only_believed_of_docker(start: Start) -> None:
    ran = start().run("echo 'OCI runtime exec failed: exec failed'; exit 126", SECONDS)
    assert (ran.output, ran.returncode) == (b"OCI runtime exec failed: exec failed\n", 126)


@docker_mark
def test_killing_everything_it_can_see_is_survived(start: Start) -> None:
    box = start()
    box.run("kill -9 1; kill -TERM 1; kill -HUP 1; kill -9 -1", SECONDS)
    assert box.run("echo alive", SECONDS).output == b"alive\n"


# What is no model's doing


@docker_mark
def test_a_container_that_somebody_else_removes_or_stops_is_lost(start: Start, docker: Any) -> None:
    removed, stopped = start(), start()
    docker.api.remove_container(removed.id, force=True)
    docker.api.stop(stopped.id)
    for box in (removed, stopped):
        with pytest.raises(Lost):
            box.run("echo alive", SECONDS)


# Reading


@given(st.lists(st.binary(max_size=30), max_size=12), st.integers(0, 40), st.integers(1, 40))
def test_the_first_and_the_last_bytes_are_kept(pieces: list[bytes], first: int, last: int) -> None:
    kept, whole = KeptOutput(first, last), b"".join(pieces)
    for piece in pieces:
        kept.add(piece)
    assert kept.total == len(whole)
    if len(whole) <= first + last:
        assert kept.bytes() == whole
    else:
        left = len(whole) - first - last
        assert kept.bytes() == whole[:first] + f"\n[{left} bytes left out]\n".encode() + whole[-last:]


@given(st.lists(st.binary(max_size=20), max_size=6), st.integers(1, 7))
def test_frames_are_joined_however_they_are_cut(payloads: list[bytes], size: int) -> None:
    stream = b"".join(bytes([1, 0, 0, 0]) + len(each).to_bytes(4, "big") + each for each in payloads)
    frames = Frames()
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert b"".join(map(frames.payload, pieces)) == b"".join(payloads)
