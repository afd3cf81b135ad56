"""Review in other tools: what goes out comes back the same, and nothing of a file that is wrong is taken."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepdown.audit.cases import open_cases
from stepdown.audit.exchange.records import account_id
from stepdown.audit.exchange.spreadsheet import quoted, unquoted
from stepdown.audit.store import AuditStore, plain_notes
from stepdown.audit.verdicts import AuditVerdict
from tests.audit.reviewing import above_lowest, read_steps, review, rows, said, tight
from tests.conftest import stepdown

KINDS = {"jsonl": "q.jsonl", "csv": "q.csv", "label-studio": "ls.json", "argilla": "ar.json"}
NOTES = st.text(max_size=40) | st.sampled_from(
    [
        "=1+1",
        "+x",
        "-y",
        "@z",
        "'=q",
        "''+q",
        "a\r\nb",
        "\ttab",
        '"quoted", "twice"',
        "; , ;",
        "\x00\x1b[2J",
        "\ud800",
        "ü\u2028x",
    ]
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_every_format_gives_back_the_same_verdicts(kind: str, base: Path, data: st.DataObject) -> None:
    verdicts = st.none() | st.tuples(st.sampled_from(["tight", "uncertain", "further-downgradeable"]), NOTES)
    with TemporaryDirectory() as folder:
        first, second = (Path(shutil.copytree(base, Path(folder) / name)) for name in ("first", "second"))
        with AuditStore(first) as store:
            for reviewer in ("ann", "=bob"):
                store.reviewers.join(reviewer)
            answered = data.draw(st.lists(verdicts, min_size=2, max_size=2 * store.count_to_review()), label="answers")
        for reviewer, answers in (("ann", answered[::2]), ("=bob", answered[1::2])):
            record(first, reviewer, answers)
        file = Path(folder) / KINDS[kind]
        assert stepdown("audit", "export", str(first), "-o", str(file), "--format", kind).code == 0
        result = stepdown("audit", "import", str(second), str(file), "--format", kind)
        assert result.code == 0, result.err
        assert said(second) == said(first)
        again = stepdown("audit", "import", str(second), str(file), "--format", kind)
        assert again.out.startswith("0 verdicts taken")


def record(run: Path, reviewer: str, answers: list[tuple[str, str] | None]) -> None:
    given_by_step = dict(zip((step.id for step in above_lowest(run)), answers, strict=False))
    with open_cases(run) as cases, AuditStore(run) as store:
        for step in store.steps():
            answer = given_by_step.get(step.id)
            if answer is None:
                continue
            prefix = cases.read_prefix_digest(step.benchmark, step.instance_id, step.step_index)
            store.record(reviewer, step.id, answer[0], answer[1], prefix_digest=prefix)


@pytest.fixture(scope="module")
def base(planted_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small sampled run, without its cache: what importing needs."""
    folder = tmp_path_factory.mktemp("base") / "run"
    shutil.copytree(planted_run, folder, ignore=shutil.ignore_patterns("cache"))
    assert stepdown("audit", "sample", str(folder), "--rate", "0.4").code == 0
    return folder


@given(st.text() | st.tuples(st.sampled_from("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20'"), st.text()).map("".join))
def test_a_quoted_cell_is_no_formula_and_reads_back(text: str) -> None:
    cell = quoted(text)
    assert unquoted(cell) == text
    assert not cell.startswith(tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"))


@given(st.text())
def test_notes_are_kept_in_one_form(text: str) -> None:
    kept = plain_notes(text)
    assert plain_notes(kept) == kept
    assert "\r" not in kept
    kept.encode()


def test_an_export_names_no_model_and_holds_all_a_reviewer_needs(sampled: Path, tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    assert stepdown("audit", "export", str(sampled), "-o", str(file)).code == 0
    out = rows(file)
    labels = {row["id"]: row for row in rows(sampled / "question_bank.jsonl")}
    assert [row["id"] for row in out] == [step.id for step in above_lowest(sampled)]
    for row in out:
        assert row["messages"] == labels[row["id"]]["messages"]
        assert row["target_tier"] == labels[row["id"]]["target_tier"]
        assert (row["below"] is None) == (row["target_tier_id"] == 0)
        assert len(row["lower"]) == (0 if row["below"] is None else 3)
        assert set(row) >= {"prefix", "reviewer", "verdict", "notes", "response"}
    models = {model for row in rows(sampled / "evidence.jsonl") for model in [row["lock"]["model"]]}
    assert models
    for row in out:
        reasons = " ".join(answer["reason"] for answer in row["lower"])
        assert not any(model in reasons for model in models)


def test_a_spreadsheet_with_semicolons_and_a_byte_order_mark_is_read(sampled: Path, tmp_path: Path) -> None:
    file = tmp_path / "q.csv"
    assert stepdown("audit", "export", str(sampled), "-o", str(file)).code == 0
    table = list(csv.DictReader(io.StringIO(file.read_text(), newline="")))
    for row in table:
        row["verdict"], row["notes"] = "Tight ", "a;b\nc"
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(table[0]), delimiter=";")
    writer.writeheader()
    writer.writerows(table)
    file.write_text("\ufeff" + out.getvalue(), newline="")
    assert stepdown("audit", "import", str(sampled), str(file), "--reviewer", "ann").code == 0
    assert set(said(sampled).values()) == {("tight", "a;b\nc")}
    assert len(said(sampled)) == len(above_lowest(sampled))


Change = Callable[[list[dict[str, Any]]], None]


def changed(**fields: Any) -> Change:
    return lambda records: records[1].update(fields)


def every(records: list[dict[str, Any]], **fields: Any) -> None:
    for record in records:
        record.update(fields)


WRONG: dict[str, tuple[Change, list[str]]] = {
    "an unknown id": (changed(id="planted/nowhere/1"), [":2: id: 'planted/nowhere/1' is not in the sample"]),
    "no id": (changed(id=None), [":2: id: must be the id"]),
    "an invalid verdict": (changed(verdict="loose"), [":2: verdict: 'loose' is no verdict; known are tight,"]),
    "a verdict that is no text": (changed(verdict=["tight"]), [":2: verdict:"]),
    "a stale prefix": (changed(prefix="0f" * 32), [":2: prefix: a stale prefix"]),
    "no prefix": (changed(prefix=None), [":2: prefix: a stale prefix: the file's digest is none"]),
    "a duplicate": (lambda records: records.append(dict(records[0])), [":3: id: a duplicate:", "at line 1 already"]),
    "a name that can not stand": (changed(reviewer="a\x1b[0m"), [":2: reviewer:"]),
    "a name that is no text": (changed(reviewer=["ann"]), [":2: reviewer: not text"]),
    "notes that are no text": (changed(notes=7), [":2: notes: not text"]),
    "several": (
        lambda records: every(records, verdict="x"),
        [":1: verdict:", ":2: verdict:", "2 problems: nothing of"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_nothing_is_taken_of_a_file_with(name: str, sampled: Path, tmp_path: Path) -> None:
    review(sampled, "ann", tight)
    change, words = WRONG[name]
    file = tmp_path / "q.jsonl"
    assert stepdown("audit", "export", str(sampled), "-o", str(file)).code == 0
    records = [{**row, "notes": "new"} for row in rows(file)[:2]]
    change(records)
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    before = said(sampled)
    result = stepdown("audit", "import", str(sampled), str(file))
    assert result.code == 2
    for word in words:
        assert word in result.err, result.err
    assert said(sampled) == before


def test_lines_that_are_no_records_are_named_one_by_one(sampled: Path, tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text('{"id": 1\n\n[]\n{"id": "x"}\n' + "[" * 100_000 + "\n")
    result = stepdown("audit", "import", str(sampled), str(file), "--reviewer", "ann")
    assert result.code == 2
    for word in (":1: not JSON", ":3: not an object", ":4: id: 'x' is not", ":5: not JSON", "4 problems"):
        assert word in result.err


def _table(run: Path, file: Path, verdict: str) -> list[list[str]]:
    """The run's export as a table with a column of somebody's own, all of it answered."""
    assert stepdown("audit", "export", str(run), "-o", str(file)).code == 0
    names, *cells = csv.reader(io.StringIO(file.read_text(), newline=""))
    answered = [
        [verdict if name == "verdict" else cell for name, cell in zip(names, row, strict=True)] for row in cells
    ]
    return [[*names, "mine"], *([*row, "fine"] for row in answered)]


def _as_csv(table: list[list[str]]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out).writerows(table)
    return out.getvalue()


def test_a_quote_that_is_never_closed_swallows_no_row(sampled: Path, tmp_path: Path) -> None:
    file = tmp_path / "q.csv"
    text = _as_csv(_table(sampled, file, "tight"))
    head, _, tail = text.rpartition(",fine\r\n")[0].rpartition(",fine\r\n")
    file.write_text(f'{head},"fine\r\n{tail},fine\r\n', newline="")
    result = stepdown("audit", "import", str(sampled), str(file), "--reviewer", "ann")
    assert (result.code, "not CSV" in result.err, said(sampled)) == (2, True, {})


def test_what_a_file_says_twice_is_not_chosen_from(sampled: Path, tmp_path: Path) -> None:
    table, lines = tmp_path / "q.csv", tmp_path / "q.jsonl"
    (names, *cells) = _table(sampled, table, "tight")
    table.write_text(_as_csv([[*names[:-1], "verdict"], *cells]), newline="")
    result = stepdown("audit", "import", str(sampled), str(table), "--reviewer", "ann")
    assert (result.code, ":1: the table has two columns 'verdict'" in result.err) == (2, True)
    assert stepdown("audit", "export", str(sampled), "-o", str(lines)).code == 0
    lines.write_text(lines.read_text().replace('"verdict": null', '"verdict": "tight", "verdict": "uncertain"', 1))
    result = stepdown("audit", "import", str(sampled), str(lines), "--reviewer", "ann")
    assert (result.code, ":1: not JSON: key 'verdict' is given twice" in result.err) == (2, True)
    assert said(sampled) == {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_byte_order_mark_and_carriage_returns_are_read(kind: str, sampled: Path, tmp_path: Path) -> None:
    review(sampled, "ann", tight)
    file = tmp_path / KINDS[kind]
    assert stepdown("audit", "export", str(sampled), "-o", str(file), "--format", kind).code == 0
    text = file.read_text().replace("\r\n", "\n").replace("\n", "\r\n")
    file.write_text("\ufeff" + text, newline="")
    result = stepdown("audit", "import", str(sampled), str(file), "--format", kind)
    assert (result.code, result.out.startswith("0 verdicts taken")) == (0, True), result.err


def test_an_older_export_does_not_take_back_what_was_said_since(sampled: Path, tmp_path: Path) -> None:
    first, second, third = above_lowest(sampled)[:3]
    review(sampled, "ann", tight)
    file = tmp_path / "q.jsonl"
    assert stepdown("audit", "export", str(sampled), "-o", str(file)).code == 0
    review(sampled, "ann", lambda step: "uncertain" if step == first else None)
    with AuditStore(sampled) as store:
        store.undo("ann", second.id)
    before = said(sampled)
    records = rows(file)
    records[2]["verdict"] = "uncertain"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    result = stepdown("audit", "import", str(sampled), str(file))
    assert (result.code, said(sampled)) == (2, before)
    for line, step in enumerate((first, second), 1):
        assert f":{line}: verdict: 'ann' said this of {step.id!r} before" in result.err
    assert "2 problems: nothing of" in result.err
    records[0]["verdict"], records[1]["verdict"] = None, None
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert stepdown("audit", "import", str(sampled), str(file)).code == 0
    assert said(sampled) == {**before, ("ann", third.id): ("uncertain", "")}


def test_an_answer_to_a_step_of_somebody_elses_queue_is_refused(sampled: Path, tmp_path: Path) -> None:
    assert stepdown("audit", "sample", str(sampled), "--reviewers", "ann,bob", "--overlap", "0").code == 0
    file = tmp_path / "q.jsonl"
    assert stepdown("audit", "export", str(sampled), "-o", str(file), "--reviewer", "ann").code == 0
    record = {**rows(file)[0], "verdict": "tight", "reviewer": "bob"}
    file.write_text(json.dumps(record) + "\n")
    result = stepdown("audit", "import", str(sampled), str(file))
    assert (result.code, said(sampled)) == (2, {})
    assert "is not in the queue of 'bob'" in result.err


def test_no_format_asks_about_the_lowest_tier_and_answers_of_older_files_are_kept_and_change_nothing(
    sampled: Path, tmp_path: Path
) -> None:
    """An export once asked about every sampled step; somebody may have filled it in."""
    asked = {step.id for step in above_lowest(sampled)}
    for kind, name in KINDS.items():
        file = tmp_path / name
        assert stepdown("audit", "export", str(sampled), "-o", str(file), "--format", kind).code == 0
        text = file.read_text()
        assert all((step.id in text) == (step.id in asked) for step in read_steps(sampled)), kind
    low = [step for step in read_steps(sampled) if step.lowest][:2]
    with open_cases(sampled) as cases:
        prefixes = [cases.read_prefix_digest(step.benchmark, step.instance_id, step.step_index) for step in low]
    answers = [
        {"id": step.id, "reviewer": "ann", "verdict": verdict, "notes": "", "prefix": prefix}
        for step, prefix, verdict in zip(low, prefixes, ("tight", "uncertain"), strict=True)
    ]
    file = tmp_path / "older.jsonl"
    file.write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    done = stepdown("audit", "import", str(sampled), str(file))
    assert (done.code, done.out.startswith("2 verdicts taken")) == (0, True)
    assert "2 of them are on labels of the lowest tier, which settle themselves" in done.err
    assert set(said(sampled)) == {("ann", step.id) for step in low}
    review(sampled, "ann", tight)
    told = stepdown("audit", "apply", str(sampled)).out
    assert ("not settled" in told, "held back" in told) == (False, False)
    answers[0]["verdict"] = "further-downgradeable"
    file.write_text(json.dumps(answers[0]) + "\n")
    refused = stepdown("audit", "import", str(sampled), str(file))
    assert (refused.code, "it cannot go lower" in refused.err) == (2, True)


@pytest.mark.parametrize("name", ["Ann ", "ann\u00a0", "\uff41nn", "a nn"])
def test_one_reviewer_does_not_become_two_by_a_slip(name: str, sampled: Path, tmp_path: Path) -> None:
    review(sampled, "ann", tight)
    file = tmp_path / "q.jsonl"
    assert stepdown("audit", "export", str(sampled), "-o", str(file)).code == 0
    file.write_text("".join(json.dumps({**row, "reviewer": name, "notes": "new"}) + "\n" for row in rows(file)))
    before = said(sampled)
    result = stepdown("audit", "import", str(sampled), str(file))
    if name.strip() == "ann":
        assert (result.code, {who for who, _ in said(sampled)}) == (0, {"ann"})
    else:
        assert (result.code, said(sampled)) == (2, before)
        assert ":1: reviewer:" in result.err
        assert "looks like the reviewer 'ann'" in result.err
        refused = stepdown("audit", "sample", str(sampled), "--reviewers", f"bob,{name}")
        assert (refused.code, "looks like the reviewer 'ann'" in refused.err) == (2, True)


def test_a_name_is_one_however_it_is_spelt_and_a_new_one_is_told(sampled: Path, tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    assert stepdown("audit", "export", str(sampled), "-o", str(file)).code == 0
    for name, told in (("z\u006f\u0308e", True), ("z\u00f6e", False)):
        records = [{**row, "reviewer": name, "verdict": "tight", "notes": f"{told}"} for row in rows(file)]
        file.write_text("".join(json.dumps(record) + "\n" for record in records))
        result = stepdown("audit", "import", str(sampled), str(file))
        assert (result.code, "did not know: z\u00f6e" in result.err) == (0, told)
    assert {who for who, _ in said(sampled)} == {"z\u00f6e"}


def test_answers_without_a_name_need_one(sampled: Path, tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    assert stepdown("audit", "export", str(sampled), "-o", str(file)).code == 0
    records = [{**row, "verdict": "tight"} for row in rows(file)]
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    refused = stepdown("audit", "import", str(sampled), str(file))
    assert (refused.code, "name the reviewer with --reviewer" in refused.err) == (2, True)
    assert stepdown("audit", "import", str(sampled), str(file), "--reviewer", "ann").code == 0
    assert {who for who, _ in said(sampled)} == {"ann"}


def test_answers_of_another_than_the_reviewer_who_is_named_are_refused(sampled: Path, tmp_path: Path) -> None:
    with AuditStore(sampled) as store:
        store.reviewers.join("ann")
    file = tmp_path / "q.jsonl"
    assert stepdown("audit", "export", str(sampled), "-o", str(file)).code == 0
    records = [{**row, "verdict": "tight"} for row in rows(file)]
    records[0]["reviewer"], records[2]["verdict"] = "bo", None
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    result = stepdown("audit", "import", str(sampled), str(file), "--reviewer", "bo")
    assert (result.code, said(sampled)) == (2, {})
    assert ":2: reviewer: an answer of 'ann', and --reviewer says 'bo'" in result.err
    # The answer that is bo's and the step without one are right.
    assert f"{len(records) - 2} problems: nothing of" in result.err
    assert ":1:" not in result.err
    file.write_text("".join(json.dumps({**record, "reviewer": " ann "}) + "\n" for record in records))
    assert stepdown("audit", "import", str(sampled), str(file), "--reviewer", "ann").code == 0
    assert {who for who, _ in said(sampled)} == {"ann"}


def _answered_in_argilla(run: Path, file: Path, user: str, *options: str) -> None:
    """An export of the run with its first step answered by a user."""
    assert stepdown("audit", "export", str(run), "-o", str(file), "--format", "argilla", *options).code == 0
    records = json.loads(file.read_text())
    records[0]["responses"] = {"verdict": [{"value": "tight", "user_id": user, "status": "submitted"}]}
    file.write_text(json.dumps(records))


def test_an_answer_of_another_user_of_argilla_is_not_taken_for_the_reviewers(sampled: Path, tmp_path: Path) -> None:
    file, form = tmp_path / "ar.json", ("--format", "argilla")
    _answered_in_argilla(sampled, file, "u-17")
    other = stepdown("audit", "import", str(sampled), str(file), *form, "--reviewer", "bo")
    assert (other.code, "item 1: reviewer: an answer of 'u-17', and --reviewer says 'bo'" in other.err) == (2, True)
    with AuditStore(sampled) as store:
        store.reviewers.join("ann")
        store.reviewers.join("bo")
    for user in ("bo", account_id("bo")):
        _answered_in_argilla(sampled, file, user, "--reviewer", "ann")
        for options in ((), ("--reviewer", "ann")):
            swapped = stepdown("audit", "import", str(sampled), str(file), *form, *options)
            assert (swapped.code, said(sampled)) == (2, {})
            assert "item 1: reviewer: a step of 'ann', and 'bo' has answered it" in swapped.err
    _answered_in_argilla(sampled, file, account_id("ann"), "--reviewer", "ann")
    assert stepdown("audit", "import", str(sampled), str(file), *form, "--reviewer", "ann").code == 0
    assert {who for who, _ in said(sampled)} == {"ann"}


def test_an_answer_of_another_account_of_label_studio_is_not_taken_for_the_reviewers(
    sampled: Path, tmp_path: Path
) -> None:
    with AuditStore(sampled) as store:
        store.reviewers.join("ann")
        store.reviewers.join("bo")
    file, form = tmp_path / "ls.json", ("--format", "label-studio")
    choice = {"from_name": "verdict", "to_name": "prefix", "type": "choices", "value": {"choices": ["uncertain"]}}
    for reviewer, account, words in (
        ("ann", {"username": "bo"}, "item 1: reviewer: a step of 'ann', and 'bo' has answered it"),
        ("", {"email": "a@b.c"}, "item 1: reviewer: an answer of 'a@b.c', and --reviewer says 'ann'"),
    ):
        assert stepdown("audit", "export", str(sampled), "-o", str(file), *form).code == 0
        tasks = json.loads(file.read_text())[:1]
        tasks[0]["data"]["reviewer"] = reviewer
        tasks[0]["annotations"] = [{"completed_by": account, "result": [choice]}]
        file.write_text(json.dumps(tasks))
        result = stepdown("audit", "import", str(sampled), str(file), *form, "--reviewer", "ann")
        assert (result.code, words in result.err, said(sampled)) == (2, True, {}), result.err


def test_what_label_studio_and_argilla_add_of_their_own_is_understood(sampled: Path, tmp_path: Path) -> None:
    file = tmp_path / "ls.json"
    form = ("--format", "label-studio")
    assert stepdown("audit", "export", str(sampled), "-o", str(file), *form).code == 0
    tasks = json.loads(file.read_text())
    choice = {"from_name": "verdict", "to_name": "prefix", "type": "choices", "value": {"choices": ["uncertain"]}}
    tasks[0] |= {"id": 17, "annotations": [{"id": 3, "completed_by": {"email": "a@b.c"}, "result": [choice]}]}
    tasks[1]["annotations"] = [{"was_cancelled": True, "completed_by": 2, "result": []}]
    tasks[2]["annotations"] = [{"completed_by": 2, "result": [choice]}, {"completed_by": 2, "result": [choice]}]
    file.write_text(json.dumps(tasks))
    twice = stepdown("audit", "import", str(sampled), str(file), *form)
    assert (twice.code, "item 3: id: a duplicate" in twice.err) == (2, True)
    tasks[2]["annotations"].pop()
    file.write_text(json.dumps(tasks))
    assert stepdown("audit", "import", str(sampled), str(file), *form).code == 0
    ids = [step.id for step in above_lowest(sampled)]
    assert said(sampled) == {("a@b.c", ids[0]): ("uncertain", ""), ("2", ids[2]): ("uncertain", "")}
    file = tmp_path / "ar.json"
    assert (
        stepdown("audit", "export", str(sampled), "-o", str(file), "--format", "argilla", "--reviewer", "eve").code == 0
    )
    records = json.loads(file.read_text())
    for record, status in zip(records, ("submitted", "draft", "discarded"), strict=False):
        record["responses"] = {"verdict": [{"value": "tight", "user_id": "u", "status": status}]}
    file.write_text(json.dumps(records))
    assert stepdown("audit", "import", str(sampled), str(file), "--format", "argilla").code == 0
    assert [step for who, step in said(sampled) if who == "eve"] == [ids[0]]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("q.csv", "id,verdict\n", "no column 'reviewer'"),
        ("q.csv", "", "no column 'id'"),
        ("q.csv", "id,reviewer,verdict,notes,prefix\nx\n", "the row has 1 cells"),
        ("ls.json", "{}", "not a JSON array"),
        ("ls.json", "[1, {}]", "item 1: no task with"),
        ("ls.json", '[{"data": {}, "annotations": [{"result": [{}]}]}]', "not as Label Studio writes one"),
        ("ar.json", '[{"id": 1}]', "not a record with"),
        ("ar.json", "nonsense", "not JSON"),
        ("q.txt", "", "which format?"),
    ],
)
def test_a_file_of_another_shape_is_told_in_a_line(
    sampled: Path, tmp_path: Path, name: str, text: str, words: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    form = {"ls.json": ["--format", "label-studio"], "ar.json": ["--format", "argilla"]}.get(name, [])
    result = stepdown("audit", "import", str(sampled), str(file), *form)
    assert (result.code, words in result.err) == (2, True), result.err
    assert result.err.count(words) == 1


def test_a_file_that_is_not_there_and_a_place_that_can_not_be_written(sampled: Path, tmp_path: Path) -> None:
    missing = stepdown("audit", "import", str(sampled), str(tmp_path / "none.csv"))
    assert (missing.code, "none.csv" in missing.err) == (2, True)
    refused = stepdown("audit", "export", str(sampled), "-o", str(tmp_path / "no" / "q.csv"))
    assert (refused.code, "can not be written" in refused.err) == (2, True)


def test_notes_without_a_verdict_are_not_passed_over_in_silence(sampled: Path, tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    assert stepdown("audit", "export", str(sampled), "-o", str(file)).code == 0
    records = rows(file)
    records[0]["notes"], records[1]["notes"] = "forgot to say", " "
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    result = stepdown("audit", "import", str(sampled), str(file), "--reviewer", "ann")
    assert (result.code, f"{len(records)} steps have none" in result.out, said(sampled)) == (0, True, {})
    assert "1 of these have notes, which are not taken" in result.err


def test_an_export_that_fails_leaves_the_file_that_was_there(sampled: Path, tmp_path: Path) -> None:
    review(sampled, "ann", tight)
    file = tmp_path / "q.csv"
    file.write_text("somebody's answers")
    with AuditStore(sampled) as store:
        last = [step for step in store.steps() if not step.lowest][-1]
        store.add([last._replace(id="planted/gone/1", instance_id="gone")])
    failed = stepdown("audit", "export", str(sampled), "-o", str(file))
    assert (failed.code, "the run has no row 'planted/gone/" in failed.err) == (2, True)
    assert file.read_text() == "somebody's answers"
    assert [path.name for path in tmp_path.glob("*q.csv*")] == ["q.csv"]


def test_a_models_guesses_are_kept_and_shown_once_the_reviewer_has_answered(sampled: Path, tmp_path: Path) -> None:
    file, step = tmp_path / "guesses.jsonl", above_lowest(sampled)[0]
    good = {"id": step.id, "verdict": "tight", "notes": "sure"}
    wrong = [{**good, "id": "x"}, {**good, "verdict": "loose"}, good, {"id": step.id}]
    file.write_text("".join(json.dumps(line) + "\n" for line in [good, *wrong]))
    refused = stepdown("audit", "prelabel", str(sampled), str(file))
    assert refused.code == 2
    for words in (":2: id: 'x' is not in the sample", ":3: verdict:", ":4: id: a duplicate", ":5: verdict:"):
        assert words in refused.err
    file.write_text(json.dumps(good) + "\n")
    assert stepdown("audit", "prelabel", str(sampled), str(file)).code == 0
    with AuditStore(sampled) as store:
        assert store.prelabel("ann", step.id) is None
    review(sampled, "ann", tight)
    with AuditStore(sampled) as store:
        found = store.prelabel("ann", step.id)
    assert found is not None
    assert (found.verdict, found.notes) == (AuditVerdict.TIGHT, "sure")
