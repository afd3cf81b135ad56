"""A release with a single defect is refused, by `publish` where it is in the run and by `verify` where it is in the
release, and both say what and where it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from stepdown.releases.files import sha256_of
from stepdown.releases.layout import Holdout
from stepdown.releases.publish import PublishRefused, publish
from stepdown.releases.verify import verify
from tests.releases.sealed import PROOF, SETTINGS, Sealed, SealedRelease, SealedRun

Plant = Callable[[Any], None]
HELD = 2
"""The step whose row most defects are planted in: the second row, the second step of its instance."""


@dataclass(frozen=True)
class Defect:
    """A defect that can stand in a run and in a release alike."""

    name: str
    plant: Callable[[Sealed], None]
    said: str
    """What the problem says."""
    field: str = ""
    row: int | None = None
    file: str = "question_bank.jsonl"


def in_rows(name: str, change: Plant, said: str, field: str, row: int | None = HELD) -> Defect:
    return Defect(name, lambda sealed: sealed.rows(change), said, field, row)


def in_row(name: str, change: Plant, said: str, field: str) -> Defect:
    return in_rows(name, lambda rows: change(rows[HELD - 1]), said, field)


def in_line(name: str, change: Callable[[bytes], bytes], said: str, row: int = HELD, field: str = "") -> Defect:
    def plant(lines: list[bytes]) -> None:
        lines[row - 1] = change(lines[row - 1])

    return Defect(name, lambda sealed: sealed.bytes_of_rows(plant), said, field, row)


def in_manifest(name: str, change: Plant, said: str, field: str) -> Defect:
    return Defect(name, lambda sealed: sealed.run_manifest(change), said, field, file="manifest.json")


def say(text: str, role: str = "assistant") -> Plant:
    """Add a text to the newest message of a role, and to that message in the rows that come after."""

    def plant(rows: list[dict[str, Any]]) -> None:
        for row in rows[HELD - 1 : HELD + 1]:
            message = next(m for m in row["messages"] if m["role"] == role)
            message["content"] += f" {text}"

    return plant


def first_call(change: Plant) -> Plant:
    def plant(rows: list[dict[str, Any]]) -> None:
        for row in rows[HELD - 1 : HELD + 1]:
            change(row["messages"][2]["tool_calls"][0])

    return plant


def nested(row: dict[str, Any]) -> None:
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    row["messages"][1]["content"] = deep


def renamed(name: str) -> Plant:
    """Give the first instance another id."""

    def plant(rows: list[dict[str, Any]]) -> None:
        for row in rows[:3]:
            row["instance_id"] = name
            row["id"] = f"{row['benchmark']}/{name}/{row['step_index']}"

    return plant


def audited(**changed: Any) -> Plant:
    whole = {"revision": 1, "sampled": 3, "settled": 3, "unsettled": 0, "tight": 3, "lowered": 0, "held_back": {}}

    def plant(run: dict[str, Any]) -> None:
        run["audit"] = {**whole, "reviewers": 1, "workloads": [], **changed}

    return plant


def one_more(run: dict[str, Any]) -> None:
    run["instances"]["office"] += 1
    run["seeds"]["models"]["office"]["m3-alpha"] += 1


DEFECTS = [
    in_rows("a row given twice", lambda rows: rows.insert(1, dict(rows[0])), "given before", "id"),
    in_rows("an instance given twice", lambda rows: rows.extend(map(dict, rows[:3])), "given before", "id", None),
    in_rows("a step missing", lambda rows: rows.pop(1), "step 2 must stand here, not 3", "step_index"),
    in_rows("the last step missing", lambda rows: rows.pop(2), "ends with step 2 of 3", "total_steps"),
    in_rows("the first step missing", lambda rows: rows.pop(0), "step 1 must stand here, not 2", "step_index", 1),
    in_rows("steps out of order", lambda rows: rows.insert(1, rows.pop(2)), "step 2 must stand here", "step_index"),
    in_row("another number of steps", lambda row: row.update(total_steps=4), "the row before said 3", "total_steps"),
    in_row("an id that is not its parts", lambda row: row.update(id="office/other/2"), "must be benchmark/", "id"),
    in_row(
        "a tier that is none", lambda row: row.update(target_tier="ultra"), "no tier of this release", "target_tier"
    ),
    in_row("a tier with another's id", lambda row: row.update(target_tier_id=7), "has id", "target_tier_id"),
    in_row("a field missing", lambda row: row.pop("messages"), "is missing", "messages"),
    in_row("a field too many", lambda row: row.update(model="x"), "no field of a row", "model"),
    in_row("a number as text", lambda row: row.update(step_index="2"), "must be a whole number", "step_index"),
    in_row("a huge number", lambda row: row.update(total_steps=1 << 40), "too large", "total_steps"),
    in_row("no messages", lambda row: row.update(messages=[]), "must not be empty", "messages"),
    in_row("a provider's field", lambda row: row["messages"][2].update(reasoning="hm"), "is no field", "messages.2"),
    in_row(
        "an unknown role", lambda row: row["messages"][1].update(role="critic"), "must be one of", "messages.1.role"
    ),
    in_row(
        "content of no kind", lambda row: row["messages"][1].update(content=7), "must be text", "messages.1.content"
    ),
    in_rows(
        "a provider's call id",
        first_call(lambda call: call.update(id="toolu_01")),
        "must be call_1",
        "messages.2.tool_calls.0.id",
    ),
    in_rows(
        "arguments that are no JSON",
        first_call(lambda call: call["function"].update(arguments="{x")),
        "must be the text of one JSON object",
        "messages.2.tool_calls.0.function.arguments",
    ),
    in_row(
        "an answer to no call",
        lambda row: row["messages"][3].update(tool_call_id="call_9"),
        "answers no call",
        "messages.3.tool_call_id",
    ),
    in_row(
        "tools that are none", lambda row: row.update(tools=[{"type": "function"}]), "must be a function", "tools.0"
    ),
    in_rows("a model's name in an answer", say("I am M1-Alpha."), "names a model of the pool: m1-alpha", "messages.2"),
    in_rows(
        "a model's name spelt otherwise", say("I am M1 Alpha."), "names a model of the pool: m1-alpha", "messages.2"
    ),
    in_rows(
        "a key between escapes",
        first_call(lambda call: call["function"].update(arguments='{"key": "\\u0073k-' + "a1B2" * 6 + '"}')),
        "looks like an API key",
        "messages.2",
    ),
    in_rows(
        "a home between escapes",
        first_call(lambda call: call["function"].update(arguments='{"path": "\\/home\\/annabel"}')),
        "in somebody's home: /home/annabel",
        "messages.2",
    ),
    in_rows("a model's name in a field", renamed("m0-alpha_7"), "names a model of the pool", "instance_id", 1),
    in_rows("an API key", say("use sk-" + "a1B2" * 6, "tool"), "looks like an API key", "messages.3"),
    in_rows("an AWS key", say("AKIA" + "ABCD" * 4, "user"), "looks like an AWS access key", "messages.1"),
    in_rows("a private key", say("-----BEGIN RSA PRIVATE KEY-----", "tool"), "looks like a private key", "messages.3"),
    in_rows("somebody's home", say("in /home/annabel/src", "tool"), "in somebody's home: /home/annabel", "messages.3"),
    in_rows("a Windows home", say(r"in C:\Users\annabel\x", "tool"), "in somebody's home", "messages.3"),
    in_rows("root's home", say("in /root/runs/x", "tool"), "in somebody's home: /root/runs", "messages.3"),
    in_rows("a path as a field", renamed("/srv/run/7"), "an absolute path: /srv/run/7", "instance_id", 1),
    in_rows("a control character in an id", renamed("case\x1b[31m"), "control characters", "instance_id", 1),
    in_rows("NUL", say("\0", "tool"), "holds NUL", "messages.3"),
    in_rows("a lone surrogate", say("\ud800", "tool"), "holds a lone surrogate", "messages.3"),
    in_row("deep nesting", nested, "nested more than 64 levels", "messages.1"),
    in_rows(
        "an instance in two groups",
        lambda rows: rows[1].update(group="office-elsewhere", split="train"),
        "not that of the row before",
        "group",
    ),
    in_line("a key given twice", lambda line: line[:-2] + b', "id": "x"}\n', "key 'id' is given twice"),
    in_line("no JSON", lambda line: line[:-9] + b"\n", "not JSON"),
    in_line("no object", lambda _: b"[]\n", "a row must be an object"),
    in_line("no UTF-8", lambda line: line.replace(b"Form", b"\xff\xfe", 1), "not UTF-8"),
    in_line("not a number", lambda line: line.replace(b'"step_index": 2', b'"step_index": NaN'), "NaN is no number"),
    in_line("infinite depth", lambda _: b"[" * 100_000 + b"\n", "nested too deeply"),
    in_line("a blank line", lambda line: b"\n" + line, "not JSON"),
    in_line("a line cut off", lambda line: line[:-1], "cut off", row=30),
    in_manifest("an unsettled verdict", audited(unsettled=1), "1 audit verdicts are not settled", "audit.unsettled"),
    in_manifest("a sampled step without verdict", audited(settled=2), "2 of 3 sampled steps", "audit.settled"),
    in_manifest(
        "a sample without an audit",
        lambda run: run["files"]["audit_queue.jsonl"].update(lines=4),
        "4 steps were sampled for the audit",
        "audit",
    ),
    in_manifest("unfinished instances", lambda run: run.update(unfinished=2), "", "unfinished"),
    in_manifest("blocked instances", lambda run: run.update(blocked={"office": {"an outage": 1}}), "", "blocked"),
    in_manifest(
        "a harness without version", lambda run: run["workloads"][0].pop("version"), "not pinned", "workloads.0.version"
    ),
    in_manifest("a workload without version", lambda run: run.update(workloads=[]), "is empty", "workloads"),
    in_manifest(
        "seeds of an unknown file",
        lambda run: run["protocol"]["workloads"][0]["seeds"].update(file="seeds.jsonl"),
        "the file it names is not pinned",
        "protocol.workloads.0.seeds.sha256",
    ),
    in_manifest(
        "another protocol", lambda run: run["protocol"]["rules"].update(cascade=1), "not that of", "protocol_digest"
    ),
    in_manifest(
        "an instance without seed",
        lambda run: run["seeds"]["models"]["office"].update({"m3-alpha": 9}),
        "9 seeds of 10 instances",
        "seeds.models.office",
    ),
    in_manifest(
        "a seed of a cheap model",
        lambda run: run["seeds"]["models"].update(office={"m0-alpha": 10}),
        "no model of the strong tier",
        "seeds.models.office",
    ),
    in_manifest("another pool", lambda run: run["pool"].update(digest="0" * 64), "not that of", "pool.digest"),
    in_manifest(
        "a pool whose models are not named",
        lambda run: run["protocol"]["pool"]["tiers"][0].update(models=[]),
        "not the names of the models",
        "pool.tiers.0.models",
    ),
    in_manifest("a pool without version", lambda run: run["pool"].update(version=""), "is missing", "pool.version"),
    in_manifest("other labels", lambda run: run["labels"]["office"].update(low=99), "not those of the runs", "labels"),
    in_manifest("other instances", one_more, "the runs have 11", "instances"),
    in_manifest(
        "a key in the manifest",
        lambda run: run["needed"].update(note="hf_" + "a1B2" * 6),
        "Hugging Face token",
        "needed",
    ),
    in_manifest(
        "a path in the manifest",
        lambda run: run["workloads"][0].update(version="1+/home/annabel/office"),
        "an absolute path of a machine",
        "workloads.0.version",
    ),
]


def test_there_are_more_than_25_kinds() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS) > 25


def problems_of(act: Callable[[], Any]) -> list[str]:
    """The problems that a release was refused for; none where it was not."""
    try:
        found = act()
    except PublishRefused as refused:
        return [str(problem) for problem in refused.problems]
    return [str(problem) for problem in found.problems] if hasattr(found, "problems") else []


def names(problems: list[str], defect: Defect, file: str) -> bool:
    """Whether one of the problems names the file, the row, the field and the defect."""
    place = f"{file}:{defect.row}:" if defect.row is not None else file
    return any(place in line and defect.field in line and defect.said in line for line in problems)


def test_what_is_sealed_again_without_a_defect_is_sound(sound_run: Path, sound_release: Path, tmp_path: Path) -> None:
    run, release = copied(sound_run, tmp_path / "run"), copied(sound_release, tmp_path / "release")
    for sealed in (SealedRun(run), SealedRelease(release)):
        sealed.rows(lambda rows: None)
        sealed.run_manifest(audited())
    publish([run], tmp_path / "published", SETTINGS)
    assert problems_of(lambda: verify(tmp_path / "published")) == []
    assert problems_of(lambda: verify(release)) == []


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name.replace(" ", "-"))
def test_publish_refuses_a_run_with(defect: Defect, sound_run: Path, tmp_path: Path) -> None:
    run = copied(sound_run, tmp_path / "run")
    defect.plant(SealedRun(run))
    problems = problems_of(lambda: publish([run], tmp_path / "release", SETTINGS))
    assert names(problems, defect, defect.file), problems
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name.replace(" ", "-"))
def test_verify_refuses_a_release_with(defect: Defect, sound_release: Path, tmp_path: Path) -> None:
    release = copied(sound_release, tmp_path / "release")
    defect.plant(SealedRelease(release))
    found = replace(defect, field="runs.0" if defect.field in ("unfinished", "blocked") else defect.field)
    problems = problems_of(lambda: verify(release))
    assert names(problems, found, defect.file), problems


def copied(folder: Path, place: Path) -> Path:
    shutil.copytree(folder, place)
    return place


# What can be wrong with a run alone: its evidence stays with it.


def proof(change: Plant) -> Plant:
    return lambda run: SealedRun(run).rows(lambda rows: change(rows[HELD - 1][PROOF]))


def without_acceptance(proof: dict[str, Any]) -> None:
    for trial in proof["trials"]:
        trial["accepted"] = False


def only_in_a_run() -> dict[str, tuple[Plant, str]]:
    def other_row(run: Path) -> None:
        lines = (run / "evidence.jsonl").read_text().splitlines(keepends=True)
        (run / "evidence.jsonl").write_text("".join([lines[1], lines[0], *lines[2:]]))
        SealedRun(run).seal()

    def shorter(run: Path) -> None:
        lines = (run / "evidence.jsonl").read_text().splitlines(keepends=True)
        (run / "evidence.jsonl").write_text("".join(lines[:-1]))
        SealedRun(run).seal()

    def changed(run: Path) -> None:
        bank = run / "question_bank.jsonl"
        bank.write_bytes(bank.read_bytes().replace(b"made-up office", b"made-up Office", 1))

    def grouped(lines: list[bytes]) -> None:
        lines[1] = lines[1][:-2] + b', "group": "x"}\n'

    return {
        "no accepted trial": (proof(without_acceptance), "evidence.jsonl:2: trials: "),
        "a label that is not the lock's": (
            proof(lambda proof: proof["lock"].update(tier="mid_high")),
            "evidence.jsonl:2: lock.tier: locked mid_high",
        ),
        "an accepted trial that failed": (
            proof(lambda proof: proof["trials"].append({"accepted": True, "verdict": "fail"})),
            "evidence.jsonl:2: trials: an accepted trial that did not pass",
        ),
        "a basis of no kind": (proof(lambda proof: proof.update(basis="hoped")), "evidence.jsonl:2: basis"),
        "evidence of another row": (other_row, "evidence.jsonl:1: id: not that of the row"),
        "evidence missing": (shorter, "evidence.jsonl:30: there is no evidence"),
        "bytes changed": (changed, "question_bank.jsonl: its bytes are not those"),
        "a group in the row": (
            lambda run: SealedRun(run).bytes_of_rows(grouped),
            "question_bank.jsonl:2: group: no field of a run's row",
        ),
        "a folder of this machine": (
            lambda run: SealedRun(run).rows(say(f"see {run.resolve()}", "tool")),
            "messages.3: names a folder of this machine",
        ),
    }


@pytest.mark.parametrize("name", only_in_a_run())
def test_publish_alone_refuses(name: str, sound_run: Path, tmp_path: Path) -> None:
    plant, said = only_in_a_run()[name]
    run = copied(sound_run, tmp_path / "run")
    plant(run)
    problems = problems_of(lambda: publish([run], tmp_path / "release", SETTINGS))
    assert any(said in line for line in problems), problems
    assert not (tmp_path / "release").exists()


# What can be wrong with a release alone: files that no run has.


def edited(name: str, old: str, new: str) -> Plant:
    def plant(release: Path) -> None:
        assert old in (release / name).read_text()
        SealedRelease(release).document(name, lambda text: text.replace(old, new, 1))

    return plant


def described(change: Plant) -> Plant:
    def plant(release: Path) -> None:
        data = json.loads((release / "croissant.json").read_text())
        change(data)
        (release / "croissant.json").write_text(json.dumps(data))
        sealed = json.loads((release / "manifest.json").read_text())
        sha256, size = sha256_of(release / "croissant.json")
        sealed["files"]["croissant.json"] = {"sha256": sha256, "bytes": size}
        (release / "manifest.json").write_text(json.dumps(sealed))
        SealedRelease(release).seal_sums()

    return plant


def manifest(change: Plant) -> Plant:
    return lambda release: SealedRelease(release).manifest(change)


def moved_to_the_other_split(rows: list[dict[str, Any]]) -> None:
    for row in rows[:3]:
        row["split"] = "test"
    rows.extend([rows.pop(0), rows.pop(0), rows.pop(0)])


def put_test_before_train(rows: list[dict[str, Any]]) -> None:
    rows[:] = [row for split in ("test", "train") for row in rows if row["split"] == split]


SHARD = "data/train-00000-of-00001.parquet"


def only_in_a_release() -> dict[str, tuple[Plant, str]]:
    def link(release: Path) -> None:
        (release / "README.md").rename(release.parent / "README.md")
        (release / "README.md").symlink_to(release.parent / "README.md")

    def garbage(release: Path) -> None:
        (release / SHARD).write_bytes(b"PAR1" + bytes(range(256)) * 20 + b"PAR1")
        SealedRelease(release).seal()

    def other_record(release: Path) -> None:
        sealed = SealedRelease(release)
        rows = [json.loads(line) for line in sealed.bank.read_text().splitlines()]
        rows[1]["messages"][1]["content"] += "!"
        sealed._shards(rows)
        sealed.seal()

    def fewer_records(release: Path) -> None:
        sealed = SealedRelease(release)
        rows = [json.loads(line) for line in sealed.bank.read_text().splitlines()]
        sealed._shards(rows[:-1])
        sealed.seal()

    def gone(name: str) -> Plant:
        return lambda release: (release / name).unlink()

    def extra(name: str) -> Plant:
        return lambda release: (release / name).write_text("x")

    def bytes_changed(release: Path) -> None:
        bank = release / "question_bank.jsonl"
        bank.write_bytes(bank.read_bytes().replace(b"made-up office", b"made-up Office", 1))

    def outside(data: dict[str, Any]) -> None:
        data["files"]["../../etc/passwd"] = {"sha256": "0" * 64, "bytes": 1}

    def same_tier_twice(data: dict[str, Any]) -> None:
        data["tiers"][1]["name"] = data["tiers"][0]["name"]

    def croissant_digest(data: dict[str, Any]) -> None:
        next(item for item in data["distribution"] if item["@id"] == SHARD)["sha256"] = "0" * 64

    return {
        "a group in two splits": (
            lambda release: SealedRelease(release).rows(moved_to_the_other_split),
            "split: the group 'office-0' belongs to the other one",
        ),
        "test before train": (
            lambda release: SealedRelease(release).rows(put_test_before_train),
            "split: a row of train after rows of test",
        ),
        "a split of no name": (
            lambda release: SealedRelease(release).rows(lambda rows: rows[1].update(split="dev")),
            "question_bank.jsonl:2: split: must be train or test",
        ),
        "bytes changed": (bytes_changed, "question_bank.jsonl: its bytes are not those that the manifest lists"),
        "Parquet of another row": (other_record, f"{SHARD}:2: messages: not that of the row"),
        "Parquet with fewer rows": (fewer_records, "has no record of row 30"),
        "Parquet that is none": (garbage, f"{SHARD}: not a Parquet file that can be read"),
        "a shard missing": (gone(SHARD), f"{SHARD}: is in the manifest and not in the folder"),
        "a card missing": (gone("README.md"), "README.md: is missing"),
        "a manifest missing": (gone("manifest.json"), "manifest.json: is missing"),
        "rows missing": (gone("question_bank.jsonl"), "question_bank.jsonl: is missing"),
        "a file too many": (extra("evidence.jsonl"), "evidence.jsonl: does not belong into a release"),
        "a hidden file too many": (extra("data/.x"), "data/.x: does not belong into a release"),
        "a link": (link, "README.md: is a link"),
        "a file outside": (manifest(outside), "files.../../etc/passwd: no file of a release is called so"),
        "other sums": (
            lambda release: (release / "SHA256SUMS").write_text("0" * 64 + "  README.md\n"),
            "SHA256SUMS: not the digests of the files",
        ),
        "a manifest that is no JSON": (
            lambda release: (release / "manifest.json").write_text("{"),
            "manifest.json: not JSON",
        ),
        "a manifest with a field too many": (
            manifest(lambda data: data.update(extra=1)),
            "manifest.json: extra: unknown key",
        ),
        "two tiers of one name": (manifest(same_tier_twice), "tiers: two tiers have the same name"),
        "another count of rows": (manifest(lambda data: data.update(rows=31)), "rows: 31, but there are 30"),
        "another count of labels": (
            manifest(lambda data: data["labels"]["office"].update(low=1)),
            "labels.office.low: 1, but there are",
        ),
        "another count of a split": (
            manifest(lambda data: data["splits"]["test"].update(groups=1)),
            "splits.test: there are",
        ),
        "drops that no run has": (
            manifest(lambda data: data.update(left_out={"office": {"dropped: x": 1}})),
            "left_out: not what the runs leave out",
        ),
        "names let through that are not there": (
            manifest(lambda data: data.update(allowed_names={"m1-alpha": 4})),
            "allowed_names: rows that hold them",
        ),
        "terms missing": (manifest(lambda data: data.update(licenses={})), "licenses: must name the terms"),
        "terms missing in the text": (edited("LICENSE.md", "office", "Office"), "LICENSE.md: office: its terms"),
        "a card without head": (edited("README.md", "---\n", ""), "README.md: has no YAML head"),
        "a card whose head is no YAML": (edited("README.md", "pretty_name:", "pretty_name: {"), "is not YAML"),
        "a card that loads other files": (
            edited("README.md", "data/train-*.parquet", "data/*.jsonl"),
            "README.md: configs: must be",
        ),
        "a card that counts otherwise": (edited("README.md", "rows: 30", "rows: 29"), "README.md: stepdown: must be"),
        "a table that counts otherwise": (
            edited("README.md", "30 rows in all", "29 rows in all"),
            "README.md: counts: the block",
        ),
        "a card with a path": (
            edited("README.md", "## Known limits", "## Known limits\n\n/home/annabel/x"),
            "README.md: an absolute path of a machine",
        ),
        "a Croissant file that is no JSON": (
            lambda release: (release / "croissant.json").write_text("]"),
            "croissant.json: not JSON",
        ),
        "a Croissant digest": (described(croissant_digest), f"distribution.{SHARD}.sha256: must be"),
        "a rai key that is none": (
            described(lambda data: data.update({"rai:dataBias": "none"})),
            "croissant.json: rai:dataBias: no property of the Croissant RAI",
        ),
        "a context without rai": (
            described(lambda data: data["@context"].pop("rai")),
            "croissant.json: @context.rai",
        ),
    }


@pytest.mark.parametrize("name", only_in_a_release())
def test_verify_alone_refuses(name: str, sound_release: Path, tmp_path: Path) -> None:
    plant, said = only_in_a_release()[name]
    release = copied(sound_release, tmp_path / "release")
    plant(release)
    problems = problems_of(lambda: verify(release))
    assert any(said in line for line in problems), problems


def test_runs_of_other_tiers_are_no_one_release(sound_run: Path, tmp_path: Path) -> None:
    other = copied(sound_run, tmp_path / "other")
    SealedRun(other).manifest(lambda data: data["pool"]["tiers"][0].update(name="tiny"))
    problems = problems_of(lambda: publish([sound_run, other], tmp_path / "release", SETTINGS))
    assert any("not the tiers of" in line for line in problems), problems


def test_an_instance_of_two_runs_is_given_twice(sound_run: Path, tmp_path: Path) -> None:
    other = copied(sound_run, tmp_path / "other")
    problems = problems_of(lambda: publish([sound_run, other], tmp_path / "release", SETTINGS))
    assert len([line for line in problems if "other/question_bank.jsonl" in line and "given before" in line]) == 10


def test_all_problems_are_counted_and_the_first_hundred_shown(sound_release: Path, tmp_path: Path) -> None:
    release = copied(sound_release, tmp_path / "release")
    SealedRelease(release).rows(lambda rows: rows.extend([{**rows[0], "step_index": 9} for _ in range(200)]))
    problems = verify(release).problems
    assert len(problems.shown) == 100 < problems.total


def test_a_holdout_of_nothing_has_one_split(sound_run: Path, tmp_path: Path) -> None:
    whole = replace(SETTINGS, holdout=Holdout(share=0, seed=0))
    assert set(publish([sound_run], tmp_path / "release", whole).splits) == {"train"}
    assert problems_of(lambda: verify(tmp_path / "release")) == []
