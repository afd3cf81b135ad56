"""An episode is mini-swe-agent's own, one answer at a time, and goes on from a checkpoint as from a full replay."""

from __future__ import annotations

import gc
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepdown.builder.errors import BadInput, Lost
from stepdown.builder.records import Instance, Response, Ruling, Stop, ToolCall, Verdict
from stepdown.harnesses.containers.labels import OWNER, owner
from stepdown.harnesses.swebench import harness as harness_module
from stepdown.harnesses.swebench import mini, snapshots
from stepdown.harnesses.swebench.gradings import PatchGrading
from stepdown.harnesses.swebench.harness import SWEBench
from stepdown.harnesses.swebench.sandbox import Sandbox
from stepdown.harnesses.swebench.volatile import mask
from tests.swebench import repository
from tests.swebench.conftest import read

docker_mark = pytest.mark.docker


@dataclass
class Accepting:
    """A grader that takes whatever is not empty, and remembers it."""

    graded: list[bytes] = field(default_factory=list)

    def grade(self, instance: Instance, patch: bytes) -> PatchGrading:
        self.graded.append(patch)
        verdict = Verdict.PASS if patch.strip() else Verdict.FAIL
        return PatchGrading(verdict=verdict, patch=hashlib.sha256(patch).hexdigest())

    def verify(self, instance: Instance, patch: bytes, times: int = 0) -> PatchGrading:
        return self.grade(instance, patch)


class Ungraded(SWEBench):
    """The harness with a grader that takes anything: what is tested is the episode."""

    def __init__(self, deepest: int = snapshots.DEEPEST, **options: Any) -> None:
        super().__init__(**options)
        self.judge = Accepting()
        self._snapshots = snapshots.Snapshots(self._engine, self._options.snapshots_mib, deepest, self._warm.drop)

    def _judge(self) -> Any:
        return self.judge

    def _sandbox_made_aside(self, *of: Any) -> Sandbox:
        """A sandbox, unless an episode has to wait for it."""
        assert threading.current_thread().name.startswith("docker-aside")
        return super()._sandbox(*of)

    def in_hand(self) -> list[str]:
        """The containers of this process, of whatever harness."""
        filters = {"label": f"{OWNER}={owner()}"}
        return [each["Id"] for each in self._engine.client.api.containers(all=True, filters=filters)]

    def snapshots(self) -> int:
        """How many images of ours there are once all that nobody holds is gone."""
        gc.collect()
        self._engine.settle()
        return len(self._engine.client.api.images(filters={"label": f"{OWNER}={owner()}"}))


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Ungraded]:
    one = Ungraded(step_limit=40)
    one.keep_in(tmp_path / "kept")
    yield one
    one.snapshots()


@pytest.fixture
def instance(tmp_path: Path, image: str) -> Instance:
    return read(tmp_path, repository.instance(image))[0]


def bash(*commands: str, words: str = "I go on.") -> Response:
    return Response(words, tuple(ToolCall("bash", json.dumps({"command": each})) for each in commands))


SUBMIT = bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt")


# The agent


@docker_mark
def test_it_begins_with_upstreams_prompts_and_its_one_tool(harness: Ungraded, instance: Instance) -> None:
    with harness.open(instance) as episode:
        prefix = episode.prefix()
    system, user = prefix.messages
    assert system["content"] == mini.config().agent["system_template"].rstrip("\n")
    assert repository.PROBLEM in user["content"]
    assert "{{" not in user["content"]
    assert [tool["function"]["name"] for tool in prefix.tools] == ["bash"]


@docker_mark
def test_every_call_is_answered_in_upstreams_words(harness: Ungraded, instance: Instance) -> None:
    with harness.open(instance) as episode:
        assert episode.advance(bash("echo one", "echo two >&2; exit 3"))
        answered, one, two = episode.prefix().messages[2:]
    assert [call["id"] for call in answered["tool_calls"]] == ["call_1", "call_2"]
    assert (one["role"], one["tool_call_id"], one["content"]) == (
        "tool",
        "call_1",
        "<returncode>0</returncode>\n<output>\none\n</output>",
    )
    assert two["content"].startswith("<returncode>3</returncode>")


@docker_mark
def test_nothing_of_docker_shows_in_what_a_model_sees(harness: Ungraded, instance: Instance) -> None:
    with harness.open(instance) as episode:
        for command in ("echo hi; sleep 0", "nonsense", "kill -9 -1", "hostname", "cd /nowhere"):
            episode.advance(bash(command))
        seen = json.dumps(episode.prefix().messages[2:]).lower()
    for word in ("docker", "container", "oci", "runc", "stepdown"):
        assert word not in seen


@docker_mark
@pytest.mark.parametrize(
    "response",
    [
        Response("I think, and do nothing."),
        Response("bash({not json", malformed=True),
        Response("", (ToolCall("python", '{"command": "x"}'),)),
        Response("", (ToolCall("bash", '{"cmd": "x"}'),)),
        Response("both", (*bash("touch executed").tool_calls, ToolCall("bash", "{}"))),
        bash(*(40 * ["touch executed"])),
    ],
    ids=["words", "malformed", "unknown tool", "no command", "one bad of two", "too many"],
)
def test_an_answer_without_an_action_runs_nothing_and_is_told_so(
    harness: Ungraded, instance: Instance, response: Response
) -> None:
    with harness.open(instance) as episode:
        assert episode.advance(response)
        said, told = episode.prefix().messages[2:]
        assert episode.advance(bash("ls"))
        listed = episode.prefix().messages[-1]["content"]
    assert said["role"] == "assistant"
    assert "tool_calls" not in said
    assert told["role"] == "user"
    assert told["content"].startswith("Tool call error:")
    assert "executed" not in listed


@docker_mark
def test_an_answer_that_was_cut_off_is_told_so(harness: Ungraded, instance: Instance) -> None:
    with harness.open(instance) as episode:
        episode.advance(Response("I was just about to", stop=Stop.LENGTH))
        assert "reached the output token limit" in episode.prefix().messages[-1]["content"]


@docker_mark
def test_three_answers_without_an_action_end_it_incomplete(harness: Ungraded, instance: Instance) -> None:
    with harness.open(instance) as episode:
        assert [episode.advance(Response("Hm.")) for _ in range(3)] == [True, True, False]
        assert episode.doomed() is None
        assert episode.verdict().verdict is Verdict.INCOMPLETE


@docker_mark
def test_running_out_of_steps_is_incomplete(tmp_path: Path, instance: Instance) -> None:
    with Ungraded(step_limit=2).open(instance) as episode:
        assert episode.advance(bash("true"))
        assert not episode.advance(bash("true"))
        assert episode.verdict() == Ruling(Verdict.INCOMPLETE, "the agent ran out of steps")


@docker_mark
def test_a_patch_is_submitted_byte_by_byte(harness: Ungraded, instance: Instance) -> None:
    with harness.open(instance) as episode:
        assert episode.advance(bash(r"printf -- '--- a/x\r\n+++ b/x\r\n\xff\xfe caf\xe9\n' > patch.txt; cat patch.txt"))
        assert "\ufffd" in episode.prefix().messages[-1]["content"]
        assert not episode.advance(SUBMIT)
        ruling = episode.verdict()
    patch = hashlib.sha256(harness.judge.graded[0]).hexdigest()
    assert ruling == Ruling(Verdict.PASS, grading={"patch": patch})
    assert harness.judge.graded == [b"--- a/x\r\n+++ b/x\r\n\xff\xfe caf\xe9\n"]


@docker_mark
def test_a_large_patch_is_submitted_whole_and_an_empty_one_fails(harness: Ungraded, instance: Instance) -> None:
    with harness.open(instance) as episode:
        episode.advance(bash("seq 400000 > patch.txt"))
        episode.advance(SUBMIT)
        assert episode.verdict().verdict is Verdict.PASS
    assert harness.judge.graded == ["".join(f"{n}\n" for n in range(1, 400_001)).encode()]
    with harness.open(instance) as episode:
        episode.advance(bash("touch patch.txt"))
        assert not episode.advance(SUBMIT)
        assert episode.verdict().verdict is Verdict.FAIL


@docker_mark
def test_a_failing_submission_is_none(harness: Ungraded, instance: Instance) -> None:
    with harness.open(instance) as episode:
        assert episode.advance(SUBMIT)
        assert "No such file" in episode.prefix().messages[-1]["content"]


@docker_mark
def test_a_broken_environment_is_certain_to_fail(harness: Ungraded, instance: Instance) -> None:
    with harness.open(instance) as episode:
        assert episode.advance(bash("rm -rf /testbed"))
        assert episode.doomed() is None
        assert not episode.advance(bash("ls"))
        doomed = episode.doomed()
        assert doomed is not None
        assert doomed.verdict is Verdict.FAIL
        assert "broke its environment" in doomed.reason


# Checkpoints

COMMANDS = (
    "echo {n} >> notes.txt",
    "cat notes.txt; ls -la",
    "sed -i 's/merged/joined{n}/' spans.py",
    "git diff --stat; git status --short",
    "rm -f notes.txt; mkdir -p deep/er && ln -sf ../spans.py deep/link && chmod 700 deep",
    "mv deep moved; stat -c '%A %h %s %n' moved/* spans.py",
    "git stash -q; git stash pop 2>&1 | tail -1",
    "python3 -c 'import spans; print(spans.length([({n}, 9)]))' 2>&1 | tail -1; env | sort",
    "git add -A && git -c user.name=a -c user.email=a@b commit -qm {n} && git log | head -3",
    "no-such-command",
    "mkdir -p scratch; for n in a b c; do echo 'import spans' > scratch/$n{n}.py; done; echo 'import spans' > {n}.py",
    "find . -name '*.py'; grep -rn import --include=*.py .; ls -la . scratch",
    "python3 -c 'print({str(x) for x in range(9)})'; date; mktemp -u",
)
turns = st.one_of(
    st.tuples(st.sampled_from(COMMANDS), st.integers(1, 9)).map(
        lambda pair: bash(pair[0].replace("{n}", str(pair[1])))
    ),
    st.just(Response("I only think.")),
)


@docker_mark
@given(st.lists(turns, min_size=2, max_size=6), st.data())
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_from_a_checkpoint_and_from_a_full_replay_it_goes_on_alike(
    harness: Ungraded, instance: Instance, script: list[Response], data: st.DataObject
) -> None:
    at = data.draw(st.integers(1, len(script) - 1))
    with harness.open(instance) as whole:
        if not all(whole.advance(response) for response in script[:at]):
            return
        checkpoint = whole.checkpoint()
        assert checkpoint is not None
        rest = []
        for response in script[at:]:
            rest.append((whole.advance(response), whole.doomed(), whole.prefix().canonical))
            if not rest[-1][0]:
                break
    # Used twice: the first use must not change it.
    for _ in range(2):
        with harness.open(instance, checkpoint) as resumed:
            again = []
            for response in script[at:]:
                again.append((resumed.advance(response), resumed.doomed(), resumed.prefix().canonical))
                if not again[-1][0]:
                    break
        assert again == rest


@docker_mark
def test_a_snapshot_goes_when_nobody_holds_its_checkpoint_any_more(harness: Ungraded, instance: Instance) -> None:
    before = harness.snapshots()
    with harness.open(instance) as episode:
        episode.advance(bash("echo 1 > one"))
        first = episode.checkpoint()
    with harness.open(instance, first) as episode:
        episode.advance(bash("echo 2 > two"))
        second = episode.checkpoint()
        assert harness.snapshots() == before + 2
        del first, episode
    # The container that stands at the second was started from the first. Once it is used that one is held by nobody,
    # and the later one stands on the layers of the one that is gone.
    for _ in range(2):
        with harness.open(instance, second) as episode:
            episode.advance(bash("cat one two; rm one"))
            assert "1\n2" in episode.prefix().messages[-1]["content"]
        del episode
        assert harness.snapshots() == before + 1
    del second
    assert harness.snapshots() == before
    assert harness._snapshots.held == 0


@docker_mark
def test_where_a_snapshot_was_pruned_the_steps_are_played_again(
    harness: Ungraded, instance: Instance, docker: Any
) -> None:
    with harness.open(instance) as episode:
        episode.advance(bash("echo 1 > one"))
        checkpoint = episode.checkpoint()
    assert checkpoint is not None
    docker.api.remove_image(checkpoint.snapshot.image, force=True)
    with harness.open(instance, checkpoint) as episode:
        assert episode.prefix().canonical == checkpoint.prefix.canonical
        episode.advance(bash("cat one"))
        assert "1\n" in episode.prefix().messages[-1]["content"]


@docker_mark
def test_a_chain_of_snapshots_never_becomes_too_deep_to_start(instance: Instance) -> None:
    harness = Ungraded(deepest=4)
    checkpoint, depths = None, []
    for number in range(4):
        with harness.open(instance, checkpoint) as episode:
            episode.advance(bash(f"echo {number} >> all"))
            checkpoint = episode.checkpoint()
            episode.advance(bash("true"))  # else its container would be handed on, and no layer be added
        assert checkpoint is not None
        depths.append(checkpoint.snapshot.layers)
    assert max(depths) == 4
    with harness.open(instance, checkpoint) as episode:
        episode.advance(bash("cat all"))
        assert "0\n1\n2\n3\n" in episode.prefix().messages[-1]["content"]


@docker_mark
@pytest.mark.parametrize(
    "command",
    [
        "sleep 600 &",
        "echo x > /dev/shm/x",
        "echo '127.0.0.1 x' >> /etc/hosts",
        "ln spans.py other.py",
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"here\")'",
        'python3 -c \'import os; os.setxattr("spans.py", "user.mine", b"x")\'',
        "truncate -s 1000M a b c d e",
        "python3 -c 'for n in range(20_001): open(str(n), \"w\").close()'",
    ],
    ids=["process", "shared memory", "mounted file", "hard link", "socket", "attribute", "holes", "many files"],
)
def test_what_a_snapshot_would_lose_makes_none(
    harness: Ungraded, instance: Instance, tmp_path: Path, command: str
) -> None:
    with harness.open(instance) as episode:
        episode.advance(bash("true"))
        assert episode.checkpoint() is not None
        episode.advance(bash(command))
        assert episode.checkpoint() is None
    if command.startswith("sleep"):
        (line,) = (tmp_path / "kept" / "running_processes.jsonl").read_text().splitlines()
        assert json.loads(line) == {"instance": instance.id, "after_step": 2, "processes": ["sleep 600"]}


class Late(Sandbox):
    """A sandbox whose snapshots come to be after nobody waits for them any more."""

    def commit(self, repository: str, tag: str) -> None:
        super().commit(repository, tag)
        raise Lost("Docker does not answer (ReadTimeout)")


@docker_mark
def test_a_snapshot_that_fails_is_none_and_what_comes_of_it_later_is_removed(instance: Instance) -> None:
    harness = Ungraded()
    harness.sandbox_class = Late
    before = harness.snapshots()
    with harness.open(instance) as episode:
        for number in (1, 2):
            assert episode.advance(bash(f"echo {number} > made"))
            assert episode.checkpoint() is None
            assert harness.snapshots() == before + 1, "the one before is found"


@docker_mark
def test_a_container_is_ready_for_whoever_goes_on_from_a_checkpoint(
    harness: Ungraded, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    with harness.open(instance) as episode:
        episode.advance(bash("echo 1 > one"))
        checkpoint = episode.checkpoint()
    monkeypatch.setattr(harness, "_sandbox", harness._sandbox_made_aside)
    for number in range(3):
        with harness.open(instance, checkpoint) as episode:
            episode.advance(bash("cat one"))
            assert "1\n" in episode.prefix().messages[-1]["content"]
            episode.advance(bash(f"echo {number} > one"))
    del episode, checkpoint
    harness.snapshots()
    assert harness.in_hand() == []


@docker_mark
def test_what_was_written_later_stays_newer_in_a_snapshot(harness: Ungraded, instance: Instance) -> None:
    """Else `make` would not build again what was edited after it was built."""
    made = None
    for command in ("echo 1 > made", "echo 2 > source"):
        with harness.open(instance, made) as episode:
            episode.advance(bash(command))
            if command == "echo 1 > made":
                episode.advance(bash("echo 1 > between"))
            made = episode.checkpoint()
    with harness.open(instance, made) as episode:
        episode.advance(bash("[ between -nt made ] && [ source -nt between ] && echo newer"))
        assert "\nnewer\n" in episode.prefix().messages[-1]["content"]


@docker_mark
def test_holes_take_no_disk_of_the_host(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    """Docker would write them as zeros: of the budget they are as large as they are long."""
    harness = Ungraded(snapshots_mib=100)
    before = harness.snapshots()
    committed: list[Any] = []
    with harness.open(instance) as episode:
        commit = episode._sandbox.commit

        def watched(*of: Any) -> Any:
            committed.append(of)
            return commit(*of)

        monkeypatch.setattr(episode._sandbox, "commit", watched)
        episode.advance(bash("truncate -s 200M hole"))
        assert episode.checkpoint() is None
        assert committed == []
        episode.advance(bash("truncate -s 20M hole"))
        assert episode.checkpoint() is not None
    del episode
    assert harness.snapshots() == before


@docker_mark
def test_snapshots_keep_within_their_budget_of_disk(instance: Instance) -> None:
    harness = Ungraded(snapshots_mib=10)
    before = harness.snapshots()
    with harness.open(instance) as episode:
        episode.advance(bash("head -c 6M /dev/urandom > one"))
        held = [episode.checkpoint()]
        episode.advance(bash("head -c 6M /dev/urandom > two"))
        held.append(episode.checkpoint())
        assert [each is not None for each in held] == [True, False]
        assert harness.snapshots() == before + 1


@docker_mark
def test_with_normalize_an_agent_is_shown_the_same_to_the_letter(tmp_path: Path, instance: Instance) -> None:
    harness = Ungraded(normalize="durations")
    seen = set()
    for _ in range(2):
        with harness.open(instance) as episode:
            episode.advance(bash("python3 -m pytest -p no:cacheprovider; time sleep 0.0$RANDOM; echo 'sleep(2.5s)'"))
            seen.add(episode.prefix().exact)
            shown = episode.prefix().messages[-1]["content"]
    assert len(seen) == 1
    assert " 2 passed in 0.00s =" in shown
    assert "real\t0.00s" in shown
    assert "sleep(2.5s)" in shown, "what is no duration stays"
    assert "normalize: durations" in harness.known_limits[-1]
    assert "differ from one run to the next" in Ungraded().known_limits[-1]
    assert harness.version != Ungraded().version


# Volatile text, versions


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2 passed in 0.03s", "2 passed in 0.12s"),
        ("Ran 3 tests in 0.001s", "Ran 3 tests in 1.210s"),
        ("-rw-r--r-- 1 root root 5 Nov 30 02:17 x", "-rw-r--r-- 1 root root 5 Dec  1 13:00 x"),
        ("Mon Nov 30 01:56:21 UTC 2026", "Tue Dec  1 01:56:21 UTC 2026"),
        ("2026-11-30T01:56:21.5Z start", "2026-12-01T02:00:00.125Z start"),
        ("<A object at 0x7f3a5c2d1e50>", "<A object at 0x7f00deadbeef>"),
        ("cd /tmp/tmpab12cd_3/x", "cd /tmp/tmpzz99xx_0/x"),
        ("/tmp/pytest-of-root/pytest-0/a", "/tmp/pytest-of-root/pytest-12/a"),
        ("[1] 117", "[1] 4242"),
        ("real\t0m0.003s", "real\t0m1.250s"),
        ("==== 2 passed in 9.98s =====", "==== 2 passed in 10.02s ===="),
        ("===== 2 passed in 59.98s =====", "== 2 passed in 61.02s (0:01:01) =="),
        ("=== tests finished: 3 passed, in 9.92 seconds ===", "== tests finished: 3 passed, in 10.02 seconds ==="),
        ("random seed:        85225497", "random seed:        1225497"),
        ("You can add @seed(302934307667671531) to", "You can add @seed(11293430766767153149) to"),
        ("[detached HEAD 1a2b3c4] fix", "[detached HEAD 9a2b3c4] fix"),
        ("50000 loops, best of 5: 4.93 usec per loop", "1000000 loops, best of 5: 245 nsec per loop"),
        (
            "1.2 µs ± 3.4 ns per loop (mean ± std. dev. of 7 runs, 1,000,000 loops each)",
            "12 ms ± 13.4 µs per loop (mean ± std. dev. of 7 runs, 100 loops each)",
        ),
        ("Time taken: 1.2231845855712891e-05", "Time taken: 0.00231"),
        ("1796000000.1234", "1796000011.99"),
        ("1796000000123456789", "1796000011990000000"),
        ("1a2b3c4 3 seconds ago fix", "1a2b3c4 2 minutes ago fix"),
        ("cannot read /tmp/django_wj2yhc7n/x", "cannot read /tmp/django_zj2_hc7a/x"),
        ("id 123e4567-e89b-42d3-a456-426614174000", "id 923e4567-e89b-42d3-b456-426614174001"),
        ("<Thread(Thread-1, started 140283018458880)>", "<Thread(Thread-1, started 140283018458111)>"),
        ("Device: 0,58\tInode: 3801234     Links: 1", "Device: 0,118\tInode: 13801234    Links: 1"),
        (f"size=1234 sha256={64 * 'a'}", f"size=1236 sha256={64 * 'b'}"),
        (
            "root          62 11.1  0.0   3940  3128 ?        Ss   03:27   0:00 python3 serve.py",
            "root           8  0.0  0.2  13940 13128 ?        S    23:59  10:00 python3 serve.py",
        ),
        (
            "root          62       1  0 03:27 ?        00:00:00 python3 serve.py",
            "root           8      51 12 23:27 pts/0    00:10:00 python3 serve.py",
        ),
        ("overlay         252G   28G   75G  27% /", "overlay         252G   29G  5.5G  99% /"),
        ("Mem:           24105        2799       16546", "Mem:           24105        2154       17219"),
        (
            "        1    0.000    0.000    0.001    0.001 a.py:1(f)",
            "        1    0.020    0.000    0.021    0.021 a.py:1(f)",
        ),
        ("x\ntest_a (t.T)\n</output_head>", "x\ntest_a (t.T\n</output_head>"),
        ("<output_tail>\n_a ... ok\ny", "<output_tail>\na ... ok\ny"),
    ],
)
def test_text_that_differs_by_time_and_place_alone_is_masked_alike(one: str, other: str) -> None:
    assert one != other
    assert mask(one) == mask(other)


OBSERVED = "<returncode>0</returncode>\n<output>\n{}\n</output>"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("./a.py\n./b.py", "./b.py\n./a.py"),
        (
            "total 16\ndrwxr-xr-x 2 root root 4096 Nov 30 02:17 x",
            "total 8\ndrwxr-xr-x 1 root root 12288 Nov 30 02:18 x",
        ),
        ("drwxr-xr-x 10 a b 1 x\n-rw-r--r--  1 a b 1 y", "drwxr-xr-x 2 a b 1 x\n-rw-r--r-- 1 a b 1 y"),
    ],
)
def test_an_observation_is_masked_alike_on_any_layers_of_files(one: str, other: str) -> None:
    assert mask(OBSERVED.format(one)) == mask(OBSERVED.format(other))
    assert mask(mask(OBSERVED.format(one))) == mask(OBSERVED.format(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("-rw-r--r-- 1 root root 5 Nov 30 02:17 x", "-rw-r--r-- 1 root root 6 Nov 30 02:17 x"),
        ("drwxr-xr-x 2 root root 4096 Nov 30 02:17 x", "drwx------ 2 root root 4096 Nov 30 02:17 x"),
        ("./a.py\n./b.py", "./a.py\n./a.py"),
    ],
)
def test_what_an_observation_says_is_not_masked(one: str, other: str) -> None:
    assert mask(OBSERVED.format(one)) != mask(OBSERVED.format(other))


@docker_mark
def test_a_folder_looks_the_same_from_a_checkpoint_and_from_the_start(harness: Ungraded, instance: Instance) -> None:
    """Files that were made at different steps lie in different layers then, and are found in another order."""
    steps = [
        bash("echo 'import spans' > reproduce.py; mkdir scratch; echo x > scratch/a.py"),
        bash("echo 'import spans' > check_fix.py; echo 'import spans' > a_test.py; echo x > scratch/b.py"),
        bash("find . -name '*.py'; grep -rn import --include=*.py .; ls -la; ls -la scratch"),
    ]
    with harness.open(instance) as episode:
        for step in steps:
            episode.advance(step)
        whole = episode.prefix()
    checkpoint = None
    for step in steps[:2]:
        with harness.open(instance, checkpoint) as episode:
            episode.advance(step)
            checkpoint = episode.checkpoint()
    with harness.open(instance, checkpoint) as episode:
        episode.advance(steps[2])
        assert episode.prefix().canonical == whole.canonical


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sleep 5", "sleep 10"),
        ("timeout 5s x", "timeout 9s x"),
        ("x = 0x1f", "x = 0x2f"),
        ("2 passed", "3 passed"),
        ("/tmp/fix_a.py", "/tmp/fix_b.py"),
        ("line 12", "line 13"),
        ("version 1.2.3", "version 1.2.4"),
        # Dates that a task is about are none of the run's own.
        ("2019-01-05", "2019-01-06"),
        ("1999-12-31T23:59", "2000-01-01T00:00"),
        ("Date:   Mon Jan 7 2019 +0000", "Date:   Tue Jan 8 2019 +0000"),
        ("Jan  5  2024 setup.py", "Jan  6  2024 setup.py"),
        ("Sat, 05 Jan 2019 00:00:00 GMT", "Sun, 06 Jan 2019 00:00:00 GMT"),
        ("time 0.5", "time 0.6"),
        ("==== 2 passed ====", "===== 2 passed ====="),
        (
            "        1    0.000    0.000    0.001    0.001 a.py:1(f)",
            "        2    0.000    0.000    0.001    0.001 a.py:1(f)",
        ),
        ("== 2 passed in 0.1s ==", "== 3 passed in 0.1s =="),
        ("886313e1-3b8a-5372-9b90-0c9aee199e5d", "886313e1-3b8a-5372-9b90-0c9aee199e5e"),
    ],
)
def test_what_an_agent_meant_is_not_masked(one: str, other: str) -> None:
    assert mask(one) != mask(other)


@given(st.text(max_size=300))
def test_masking_twice_changes_nothing(text: str) -> None:
    assert mask(mask(text)) == mask(text)


def test_the_version_changes_with_limits_and_not_with_what_changes_no_answer() -> None:
    assert SWEBench().version != SWEBench(limits={"memory_mib": 512}).version
    assert SWEBench().version != SWEBench(step_limit=9).version
    assert SWEBench().version == SWEBench(checkpoints=False, snapshots_mib=1).version
    assert harness_module.VERSION in SWEBench().version


@pytest.mark.parametrize(
    ("options", "field"),
    [({"step_limit": 0}, "step_limit"), ({"limits": {"cpu": 1}}, "limits.cpu"), ({"network": True}, "network")],
)
def test_a_wrong_option_is_named(options: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput, match=f"options.{field}"):
        SWEBench(**options)
