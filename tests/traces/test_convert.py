"""What was paid for becomes seeds: each tool's exports give the same trajectories, and what is none is counted."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from stepdown.runs import build
from tests.conftest import Result, stepdown
from tests.traces import exports
from tests.traces.exports import Call, chat_line, played

BILLS = [[3, 12, 4], [25, 8]]
CALLS = played(BILLS)


def lines(values: Sequence[Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def each(write: Callable[[Call], Any]) -> bytes:
    return lines([write(call) for call in CALLS])


def shuffled(write: Callable[[Call], Any]) -> bytes:
    """Calls in the order in which they ended up in the file, not in which they were made."""
    return lines([write(call) for call in [*CALLS[1::2], *CALLS[::2]]])


EXPORTS: dict[str, tuple[str, str, Callable[[], bytes]]] = {
    "a proxy's log": ("openai", "log.jsonl", lambda: each(chat_line)),
    "a proxy's log, packed": ("openai", "log.jsonl.gz", lambda: gzip.compress(shuffled(chat_line))),
    "bodies as texts, streamed": ("openai", "log.ndjson", lambda: each(exports.bodies_line)),
    "messages beside responses": ("openai", "log.json", lambda: each(exports.beside_line)),
    "spans of OTLP, a request a line": (
        "otel",
        "spans.jsonl",
        lambda: lines([exports.otlp(CALLS[3:]), exports.otlp(CALLS[:3])]),
    ),
    "spans that were printed": (
        "otel",
        "spans.json",
        lambda: "\n".join(json.dumps(exports.console_span(call), indent=4) for call in CALLS).encode(),
    ),
    "spans of OpenInference": (
        "otel",
        "spans.jsonl",
        lambda: shuffled(lambda call: exports.console_span(call, "llm.input_messages", "llm.output_messages")),
    ),
    "traces of Langfuse": (
        "langfuse",
        "trace.json",
        lambda: lines([exports.langfuse_trace(r) for r in exports.runs(CALLS)]),
    ),
    "a page of Langfuse's API": (
        "langfuse",
        "page.json",
        lambda: json.dumps({"data": [exports.langfuse_observation(c) for c in CALLS], "meta": {}}, indent=1).encode(),
    ),
    "rows of Langfuse": ("langfuse", "rows.jsonl", lambda: shuffled(exports.langfuse_row)),
    "runs of LangSmith": ("langsmith", "runs.jsonl", lambda: shuffled(exports.langsmith_run)),
    "runs of a wrapped client": ("langsmith", "runs.jsonl", lambda: each(exports.langsmith_wrapped)),
    "a tree of runs": (
        "langsmith",
        "runs.json",
        lambda: json.dumps(
            [
                {"run_type": "chain", "inputs": {}, "child_runs": [exports.langsmith_run(call) for call in run]}
                for run in exports.runs(CALLS)
            ],
            indent=2,
        ).encode(),
    ),
    "a log of inspect_ai": ("inspect", "log.json", lambda: json.dumps(exports.inspect_log(CALLS)).encode()),
    "a packed log of inspect_ai": ("inspect", "log.eval", lambda: exports.inspect_zip(CALLS)),
    "large samples of inspect_ai": ("inspect", "log.eval", lambda: exports.inspect_zip(CALLS, in_pieces=True)),
}


def config(folder: Path, seeds: str = "{source: reference}") -> Path:
    path = folder / "run.yaml"
    path.write_text(
        "protocol:\n"
        "  pool: {version: p, tiers: [{name: low, id: 0, models: [{name: hasty, model: workload/hasty}]},"
        " {name: high, id: 3, models: [{name: strong, model: workload/reference}]}]}\n"
        "  workloads:\n"
        f"    - {{harness: 'stepdown.examples.till:Till', source: {{bills: {BILLS}}}, seeds: {seeds}}}\n"
    )
    return path


def converted(folder: Path, data: bytes, name: str = "log.jsonl", *options: str) -> tuple[Result, list[dict[str, Any]]]:
    (folder / name).write_bytes(data)
    out = folder / "seeds.jsonl"
    done = stepdown("seeds", "convert", str(folder / name), "--out", str(out), *options)
    return done, [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


@pytest.mark.parametrize("kind", EXPORTS)
def test_each_export_gives_the_trajectories_that_were_recorded(kind: str, tmp_path: Path) -> None:
    name, file, write = EXPORTS[kind]
    for options in ((), ("--from", name)):
        done, seeds = converted(tmp_path, write(), file, "--model", "strong", *options)
        assert (done.code, done.err) == (0, "")
        steps = [
            [
                [(call["name"], json.loads(call["arguments"])) for call in step.get("tool_calls", ())]
                for step in seed["steps"]
            ]
            for seed in seeds
        ]
        assert sorted(steps, key=len) == [
            [[("add", {"price": price})] for price in bill] + [[]] for bill in BILLS[::-1]
        ]
        assert sorted(seed["steps"][-1]["content"] for seed in seeds) == ["19", "33"]
        assert {seed["model"] for seed in seeds} == {"strong"}


@pytest.mark.parametrize("kind", ["a proxy's log", "spans that were printed", "a packed log of inspect_ai"])
def test_what_is_converted_for_a_config_is_labelled(kind: str, tmp_path: Path) -> None:
    _, file, write = EXPORTS[kind]
    place = config(tmp_path, "{source: import, file: seeds.jsonl}")  # which is made only now
    done, seeds = converted(tmp_path, write(), file, "--model", "strong", "--config", str(place))
    assert done.code == 0, done.err
    assert sorted((seed["benchmark"], seed["instance_id"]) for seed in seeds) == [
        ("till", "bill-1"),
        ("till", "bill-2"),
    ]
    run = build(place, tmp_path / "run")
    fresh = build(config(tmp_path), tmp_path / "fresh")
    assert [(row.id, row.target_tier) for row in run.rows()] == [(row.id, row.target_tier) for row in fresh.rows()]


def test_what_is_no_task_of_the_config_is_counted_and_a_name_that_is_not_strong_refused(tmp_path: Path) -> None:
    others = [*map(chat_line, CALLS), *map(chat_line, played([[7, 7, 7]]))]
    done, seeds = converted(
        tmp_path, lines(others), "log.jsonl", "--model", "strong", "--config", str(config(tmp_path))
    )
    assert (len(seeds), done.err.splitlines()[-1]) == (2, "passed over: 1, trajectories of no task of the config")
    done, _ = converted(tmp_path, lines(others), "log.jsonl", "--model", "hasty", "--config", str(config(tmp_path)))
    assert (done.code, done.err) == (2, "stepdown: --model: 'hasty' is no model of the pool's strong tier (strong)\n")


def test_a_route_servers_log_is_read_by_the_pools_names(tmp_path: Path) -> None:
    log = [
        {"at": call.at, "policy": "p 1", "tier": "high", "model": "strong", "status": 200, "ended": True}
        | {"request": {"model": "auto", "messages": call.messages}, "response": {"choices": [{"message": call.answer}]}}
        for call in CALLS
    ]
    log[4]["model"] = "hasty"
    done, seeds = converted(tmp_path, lines(log))
    assert [seed["model"] for seed in seeds] == ["strong"]
    assert done.err == "passed over: 1, trajectories whose steps were made by several models\n"


def side_call(call: Call) -> dict[str, Any]:
    """What an agent asks beside its steps: a title."""
    messages = [{"role": "user", "content": "A title for: adding up a bill"}]
    return exports.langfuse_observation(Call(call.run, "", messages, {"role": "assistant", "content": "Bills"}, 0))


LEFT_OUT: dict[str, tuple[Callable[[], list[Any]], str, int]] = {
    "calls that failed": (
        lambda: [chat_line(CALLS[0], response={"error": {"message": "busy"}}), *map(chat_line, CALLS)],
        "1, calls that failed",
        2,
    ),
    "answers that were broken off": (
        lambda: [*map(chat_line, CALLS), chat_line(CALLS[0], ended=False)],
        "1, calls whose answer was broken off",
        2,
    ),
    "other APIs": (
        lambda: [*map(chat_line, CALLS), {"request": {"model": "e", "input": "text"}, "response": {"data": []}}],
        "1, calls of another API than chat completions",
        2,
    ),
    "a log that begins in the middle": (
        lambda: [chat_line(call) for call in CALLS[1:]],
        "1, trajectories whose beginning is not in it",
        1,
    ),
    "a log with a hole": (
        lambda: [chat_line(call) for place, call in enumerate(CALLS) if place != 1],
        "1, trajectories with an answer whose call is not in it",
        1,
    ),
    "an answer that was drawn again": (
        lambda: [
            chat_line(CALLS[0], response={"choices": [{"message": {"role": "assistant", "content": "Hm."}}]}),
            *map(chat_line, CALLS),
        ],
        "1, answers that were asked for again, and not gone on with",
        2,
    ),
    "calls beside the agent's own": (
        lambda: [side_call(CALLS[0]), *map(exports.langfuse_observation, CALLS)],
        "1, trajectories beside the longest one of their trace",
        2,
    ),
    "spans without messages": (
        lambda: [
            *map(exports.console_span, CALLS),
            {"context": {"trace_id": "t"}, "attributes": {"gen_ai.request.model": "big"}},
        ],
        "1, calls whose messages were not recorded",
        2,
    ),
    "samples that ran out": (
        lambda: [exports.inspect_log(CALLS), exports.inspect_log(CALLS[:1], limit={"type": "token", "limit": 9})],
        "1, samples that were stopped at a limit",
        2,
    ),
}


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_what_is_no_trajectory_is_counted_by_its_reason(kind: str, tmp_path: Path) -> None:
    write, told, count = LEFT_OUT[kind]
    done, seeds = converted(tmp_path, lines(write()))
    assert (done.code, len(seeds)) == (0, count)
    assert done.err == f"passed over: {told}\n"


def test_a_last_line_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    done, seeds = converted(tmp_path, each(chat_line) + b'{"request": {"mess')
    assert (len(seeds), done.err) == (2, "passed over: 1, last lines that were cut off\n")


def test_two_runs_of_one_task_are_two_seeds(tmp_path: Path) -> None:
    again = [Call(f"again-{c.run}", c.task, c.messages, c.answer, c.at + 100) for c in CALLS[:4]]
    done, seeds = converted(tmp_path, lines(list(map(exports.langfuse_row, [*CALLS, *again]))))
    assert [seed["instance_id"] for seed in seeds] == ["bill-1", "bill-2", "bill-1"]
    assert done.out.startswith("3 seeds of 2 instances in ")
    assert seeds[0]["steps"] == seeds[2]["steps"]


def test_a_conversation_may_go_on_in_another_trace(tmp_path: Path) -> None:
    split = [Call(f"trace-{c.at}", c.task, c.messages, c.answer, c.at) for c in CALLS]
    _, seeds = converted(tmp_path, lines(list(map(exports.langfuse_observation, split))))
    assert [len(seed["steps"]) for seed in seeds] == [4, 3]


def test_a_task_is_named_where_one_says_or_by_the_trace_or_by_what_it_asks(tmp_path: Path) -> None:
    def ids(values: list[Any], *options: str) -> list[str]:
        return [seed["instance_id"] for seed in converted(tmp_path, lines(values), "log.jsonl", *options)[1]]

    assert ids([exports.langfuse_observation(call) for call in CALLS]) == ["run-bill-1", "run-bill-2"]
    assert ids([chat_line(call, metadata={"task_id": call.task}) for call in CALLS]) == ["bill-1", "bill-2"]
    named = [chat_line(call, headers={"x.task": call.task}) for call in CALLS]
    assert ids(named, "--id-field", "headers.x.task") == ["bill-1", "bill-2"]
    first, second = ids([chat_line(call) for call in CALLS])
    assert first != second
    assert first.startswith("chat-")


def test_one_name_is_not_given_to_the_trajectories_of_several_models(tmp_path: Path) -> None:
    both = [chat_line(call) for call in [*CALLS[:4], *played(BILLS, model="small")[4:]]]
    done, _ = converted(tmp_path, lines(both), "log.jsonl", "--model", "strong")
    assert (done.code, done.err) == (
        2,
        "stepdown: --made-by: several models made them ('big', 'small'): say which one is 'strong'\n",
    )
    done, seeds = converted(tmp_path, lines(both), "log.jsonl", "--model", "strong", "--made-by", "big")
    assert [(seed["model"], len(seed["steps"])) for seed in seeds] == [("strong", 4)]
    assert done.err == "passed over: 1, trajectories of another model\n"
    done, _ = converted(tmp_path, lines(both), "log.jsonl", "--made-by", "bog")
    assert "models are 'big', 'small'" in done.err


@pytest.mark.parametrize(
    ("data", "options", "problem"),
    [
        (b'{"a": 1}\n', (), "nor any other format that is known (otel, langsmith, langfuse, openai, inspect)"),
        (b"", (), "log.jsonl:1: not JSON"),
        (each(chat_line) + b"{]\n{}\n", (), "log.jsonl:8: not JSON"),
        (each(chat_line), ("--from", "opanai"), "--from: no such format 'opanai': did you mean 'openai'?"),
        (each(chat_line), ("--from", "otel"), "log.jsonl: no call of a model in it, read as OpenTelemetry spans"),
        (each(chat_line), ("--from", "inspect"), "log.jsonl:1: no log of inspect_ai"),
        (b"\x1f\x8bnothing", (), "log.jsonl: "),
    ],
)
def test_a_file_that_can_not_be_read_is_named(
    data: bytes, options: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    done, seeds = converted(tmp_path, data, "log.jsonl", *options)
    assert (done.code, seeds, len(done.err.splitlines())) == (2, [], 1)
    assert problem in done.err


def test_a_folder_holds_one_format(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    (logs / "deep").mkdir(parents=True)
    (logs / "deep" / "a.jsonl").write_bytes(each(chat_line))
    (logs / "b.jsonl").write_bytes(lines([chat_line(call) for call in played([[5, 6]])]))
    out = tmp_path / "seeds.jsonl"
    assert stepdown("seeds", "convert", str(logs), "--out", str(out)).out.startswith("3 seeds of 3 instances in ")
    (logs / "c.jsonl").write_bytes(each(exports.langsmith_run))
    done = stepdown("seeds", "convert", str(logs), "--out", str(out))
    assert (done.code, "convert them one after another" in done.err) == (2, True)


HOSTILE: list[Any] = [
    {
        "role": "assistant",
        "content": "\ud800\x00\x1b[2J",
        "tool_calls": [{"function": {"name": "x", "arguments": "{"}}],
    },
    {"role": "assistant", "tool_calls": [{"function": {"name": "add", "arguments": "[" * 1000}}]},
    {"role": "assistant", "content": [{"type": "image_url", "image_url": {}}]},
    {"role": "assistant", "content": "x", "tool_calls": [{"function": None}, 7]},
    {"role": "assistant", "tool_calls": {"function": {}}},
    {"role": "assistant"},
]


@pytest.mark.parametrize("answer", HOSTILE)
def test_hostile_answers_end_no_conversion(answer: Any, tmp_path: Path) -> None:
    odd = chat_line(CALLS[0], response={"choices": [{"message": answer}]})
    odd["request"] = {
        "model": "big",
        "messages": [{"role": 7, "content": {"a": answer}}, {"role": "user", "content": answer}],
    }
    done, seeds = converted(tmp_path, lines([*map(chat_line, CALLS), odd]))
    assert done.code == 0
    assert len(seeds) in (2, 3)
    assert "\x1b" not in done.err
