"""Bad input gets one line that names the file, the line and the field, and exit code 2; nothing is lost by it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result, Shop, stepdown
from tests.provider import Provider
from tests.workshop import config

Start = Callable[..., Provider]
Change = Callable[[dict[str, Any]], Any]


def refused(result: Result, *words: str) -> None:
    """The command said one line with these words, and exit code 2."""
    assert result.code == 2, result
    lines = [line for line in result.err.splitlines() if not line.startswith("loading workload")]
    assert len(lines) == 1, result.err
    for word in words:
        assert word in lines[0]


def pool_of(settings: dict[str, Any]) -> dict[str, Any]:
    pool: dict[str, Any] = settings["protocol"]["pool"]
    return pool


def with_unknown_key(settings: dict[str, Any]) -> None:
    settings["protocol"]["rulez"] = {}


def with_one_tier(settings: dict[str, Any]) -> None:
    pool_of(settings)["tiers"] = pool_of(settings)["tiers"][:1]


def with_a_model_in_two_tiers(settings: dict[str, Any]) -> None:
    pool_of(settings)["tiers"][1]["models"] = pool_of(settings)["tiers"][0]["models"]


def with_one_model_under_two_names(settings: dict[str, Any]) -> None:
    pool_of(settings)["tiers"][1]["models"][0]["model"] = pool_of(settings)["tiers"][0]["models"][0]["model"]


def with_an_empty_tier(settings: dict[str, Any]) -> None:
    pool_of(settings)["tiers"][0]["models"] = []


def with_ids_that_fall(settings: dict[str, Any]) -> None:
    pool_of(settings)["tiers"][0]["id"] = 9


def with_a_key(settings: dict[str, Any]) -> None:
    pool_of(settings)["version"] = "sk-" + "a1B2" * 8


def with_an_address_among_the_parameters(settings: dict[str, Any]) -> None:
    pool_of(settings)["tiers"][0]["models"][0]["parameters"] = {"api_base": "http://127.0.0.1"}


def with_another_model_as_fallback(settings: dict[str, Any]) -> None:
    pool_of(settings)["tiers"][0]["models"][0]["parameters"] = {"fallbacks": ["openai/master"]}


def with_a_mock_instead_of_a_model(settings: dict[str, Any]) -> None:
    pool_of(settings)["tiers"][0]["models"][0]["parameters"] = {"mock_response": "made 1"}


def with_credentials_among_the_parameters(settings: dict[str, Any]) -> None:
    pool_of(settings)["tiers"][0]["models"][0]["parameters"] = {"extra_headers": {"Authorization": "Bearer x"}}


def with_credentials_in_an_address(settings: dict[str, Any]) -> None:
    settings["operation"]["endpoints"]["default"]["api_base"] = "http://me:secret@127.0.0.1:9"


def with_an_infinite_price(settings: dict[str, Any]) -> None:
    pool_of(settings)["tiers"][0]["models"][0]["price"] = {"input": float("inf")}


def with_a_hint_model_named_like_another(settings: dict[str, Any]) -> None:
    settings["protocol"]["hints"] = {"source": "model", "model": {"name": "novice", "model": "openai/adviser"}}


def with_a_function_for_a_workload(settings: dict[str, Any]) -> None:
    settings["protocol"]["workloads"][0]["harness"] = "os:getcwd"


def with_half_a_workload(settings: dict[str, Any]) -> None:
    settings["protocol"]["workloads"][0]["harness"] = ":Workshop"


def with_a_source_of_another_type(settings: dict[str, Any]) -> None:
    settings["protocol"]["workloads"][0]["source"] = {"needs": 7}


def with_an_unreachable_acceptance(settings: dict[str, Any]) -> None:
    settings["protocol"]["rules"] = {"acceptance": {"passes": 3, "of": 2}}


def with_an_endpoint_of_no_model(settings: dict[str, Any]) -> None:
    settings["operation"]["endpoints"]["nobody"] = {}


def with_no_workload(settings: dict[str, Any]) -> None:
    settings["protocol"]["workloads"] = []


def with_an_unknown_harness(settings: dict[str, Any]) -> None:
    settings["protocol"]["workloads"][0]["harness"] = "nothing"


def with_a_missing_class(settings: dict[str, Any]) -> None:
    settings["protocol"]["workloads"][0]["harness"] = "tests.workshop:Nothing"


def with_an_unknown_option(settings: dict[str, Any]) -> None:
    settings["protocol"]["workloads"][0]["options"] = {"colour": "red"}


def with_a_wrong_source(settings: dict[str, Any]) -> None:
    settings["protocol"]["workloads"][0]["source"] = {"want": []}


def with_one_instance_twice(settings: dict[str, Any]) -> None:
    settings["protocol"]["workloads"] *= 2


def with_reference_seeds_and_no_reference(settings: dict[str, Any]) -> None:
    settings["protocol"]["workloads"][0]["seeds"] = {"source": "reference"}


def with_a_seed_file_that_is_not_there(settings: dict[str, Any]) -> None:
    settings["protocol"]["workloads"][0]["seeds"] = {"source": "import", "file": "gone.jsonl"}


def with_no_workers(settings: dict[str, Any]) -> None:
    settings["operation"]["workers"] = 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_unknown_key, ("config.yaml:", "protocol.rulez", "unknown key")),
        (with_one_tier, ("protocol.pool", "strong tier")),
        (with_a_model_in_two_tiers, ("protocol.pool", "novice", "tier 'low'", "tier 'mid'")),
        (with_one_model_under_two_names, ("protocol.pool", "hand", "tier 'low'")),
        (with_an_empty_tier, ("config.yaml:", "tiers.0.models")),
        (with_ids_that_fall, ("protocol.pool", "ids")),
        (with_a_key, ("config.yaml:", "API key")),
        (with_an_address_among_the_parameters, ("parameters", "api_base")),
        (with_another_model_as_fallback, ("parameters", "fallbacks")),
        (with_a_mock_instead_of_a_model, ("parameters", "mock_response")),
        (with_credentials_among_the_parameters, ("parameters", "extra_headers")),
        (with_credentials_in_an_address, ("endpoints.default.api_base", "credentials")),
        (with_an_infinite_price, ("price.input", "finite")),
        (with_a_hint_model_named_like_another, ("hints.model", "novice")),
        (with_a_function_for_a_workload, ("harness", "os:getcwd")),
        (with_half_a_workload, ("harness", ":Workshop")),
        (with_a_source_of_another_type, ("source", "TypeError")),
        (with_an_unreachable_acceptance, ("protocol.rules.acceptance", "passes")),
        (with_an_endpoint_of_no_model, ("operation.endpoints", "nobody")),
        (with_no_workload, ("protocol.workloads",)),
        (with_an_unknown_harness, ("protocol.workloads.0.harness", "nothing", "bfcl")),
        (with_a_missing_class, ("protocol.workloads.0.harness", "Nothing")),
        (with_an_unknown_option, ("protocol.workloads.0", "colour")),
        (with_a_wrong_source, ("protocol.workloads.0.source", "needs")),
        (with_one_instance_twice, ("protocol.workloads.1.source", "job-0", "twice")),
        (with_reference_seeds_and_no_reference, ("seeds.source", "workload/reference")),
        (with_a_seed_file_that_is_not_there, ("seeds.file", "gone.jsonl")),
        (with_no_workers, ("config.yaml:", "operation.workers")),
    ],
)
def test_a_wrong_config_is_refused_in_one_line(shop: Shop, change: Change, words: tuple[str, ...]) -> None:
    settings = config("http://127.0.0.1:9", [[0]])
    change(settings)
    refused(shop.build(settings), *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("protocol: [", ("config.yaml:",)),
        ("- a\n- b\n", ("config.yaml", "mapping")),
        ("protocol: {}\nprotocol: {}\n", ("config.yaml:2", "twice")),
        ("protocol: !!python/object:os.system {}\n", ("config.yaml:1",)),
        ("protocol:\n  pool: nowhere.yaml\n", ("nowhere.yaml",)),
        ('protocol:\n  pool: "a\\0b"\n', ("null",)),
        ("protocol: !!bool x\n", ("config.yaml", "YAML")),
        ("protocol: !!int ''\n", ("config.yaml", "YAML")),
        ("protocol: !!timestamp x\n", ("config.yaml", "YAML")),
        ("protocol: 2024-13-45\n", ("config.yaml", "YAML")),
        ("protocol: {rules: {cascade: " + "9" * 5000 + "}}\n", ("config.yaml",)),
        ("", ("config.yaml",)),
    ],
)
def test_a_file_that_is_no_config_is_refused_in_one_line(shop: Shop, text: str, words: tuple[str, ...]) -> None:
    path = shop.folder / "config.yaml"
    path.write_text(text)
    refused(stepdown("build", str(path), "--run", str(shop.run)), *words)


def test_a_missing_config_and_bytes_that_are_no_text_are_refused(shop: Shop) -> None:
    refused(stepdown("build", str(shop.folder / "none.yaml"), "--run", str(shop.run)), "none.yaml")
    (shop.folder / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    refused(stepdown("build", str(shop.folder / "bytes.yaml"), "--run", str(shop.run)), "bytes.yaml", "UTF-8")


def test_a_missing_key_variable_is_named_before_any_call(
    shop: Shop, provider: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORKSHOP_KEY", raising=False)
    one = provider()
    settings = config(one.url, [[0]])
    settings["operation"]["endpoints"]["default"]["api_key"] = "WORKSHOP_KEY"
    refused(shop.build(settings), "WORKSHOP_KEY", "operation.endpoints")
    assert one.count() == 0


GOOD = '{"instance_id": "job-0", "model": "master", "steps": [{"content": "made 1"}]}'


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{nope", ("seeds.jsonl:2", "JSON")),
        ("[]", ("seeds.jsonl:2",)),
        ('{"instance_id": "job-0", "model": "master"}', ("seeds.jsonl:2", "steps")),
        ('{"instance_id": "job-0", "model": "novice", "steps": []}', ("seeds.jsonl:2", "model", "strong tier")),
        (
            '{"instance_id": "job-0", "model": "master", "steps": [{"content": 7}]}',
            ("seeds.jsonl:2", "steps.0.content"),
        ),
        (
            '{"instance_id": "j", "model": "master", "steps": [{"tool_calls": [{"name": "f", "arguments": "{"}]}]}',
            ("seeds.jsonl:2", "steps.0.tool_calls"),
        ),
        (
            '{"instance_id": "j", "model": "master", "messages": [{"role": "assistant", "content": []}]}',
            ("seeds.jsonl:2", "messages.0.content"),
        ),
        ('{"instance_id": "j", "model": "master", "steps": [], "extra": 1}', ("seeds.jsonl:2", "extra", "unknown")),
    ],
)
def test_a_corrupt_seed_line_is_named_before_any_call(
    shop: Shop, provider: Start, line: str, words: tuple[str, ...]
) -> None:
    one = provider()
    (shop.folder / "seeds.jsonl").write_text(f"{GOOD}\n{line}\n")
    settings = config(one.url, [[0]])
    settings["protocol"]["workloads"][0]["seeds"] = {"source": "import", "file": "seeds.jsonl"}
    refused(shop.build(settings), *words)
    assert one.count() == 0


def test_imported_seeds_are_replayed_and_kept_only_if_they_pass(shop: Shop, provider: Start) -> None:
    one = provider()
    lines = [
        '{"instance_id": "job-0", "model": "master", "steps": [{"content": "spoilt"}]}',
        GOOD,
        '{"instance_id": "job-1", "model": "master", "messages": [{"role": "user", "content": "?"}, '
        '{"role": "assistant", "content": "made 1"}, {"role": "assistant", "content": "made 1"}]}',
        '{"instance_id": "job-2", "model": "master", "steps": [{"content": "made 1"}, {"content": "made 1"}]}',
        '{"instance_id": "job-3", "model": "master", "steps": []}',
    ]
    (shop.folder / "seeds.jsonl").write_text("\n".join(lines))
    settings = config(one.url, [[0], [5, 0], [0], [0], [0]])
    settings["protocol"]["workloads"][0]["seeds"] = {"source": "import", "file": "seeds.jsonl"}
    assert shop.build(settings).code == 0
    assert shop.labels() == [["low"], ["high", "low"]]
    assert shop.manifest()["dropped"]["workshop"] == {
        "no seed passed: the agent halts before step 2, but steps follow": 1,
        "no seed passed: the agent has not halted after the last step": 1,
        "the seed file has no trajectory of it": 1,
    }
    # The run keeps its own copy of the file: it can be resumed without it.
    (shop.folder / "seeds.jsonl").unlink()
    assert shop.resume().code == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"id": "workshop/job-0/1", "tier": "huge"}', ("hints.jsonl:1", "tier", "huge")),
        ('{"id": "workshop/job-0/1"}', ("hints.jsonl:1", "tier")),
        ("nope", ("hints.jsonl:1", "JSON")),
    ],
)
def test_a_corrupt_hint_line_is_named(shop: Shop, provider: Start, line: str, words: tuple[str, ...]) -> None:
    (shop.folder / "hints.jsonl").write_text(line)
    given = {"hints": {"source": "file", "file": "hints.jsonl"}}
    refused(shop.build(config(provider().url, [[0]], protocol=given)), *words)


def test_a_run_that_never_began_holds_nobody_to_its_config(shop: Shop, provider: Start) -> None:
    url = provider().url
    wrong = config(url, [[0]])
    with_one_instance_twice(wrong)
    refused(shop.build(wrong), "twice")
    refused(shop.resume(), "never begun")
    assert shop.build(config(url, [[0, 1]])).code == 0
    assert shop.labels() == [["low", "mid"]]


def test_a_mended_hint_file_is_taken_in_the_same_folder(shop: Shop, provider: Start) -> None:
    given = {"hints": {"source": "file", "file": "hints.jsonl"}}
    settings = config(provider().url, [[0]], protocol=given)
    (shop.folder / "hints.jsonl").write_text('{"id": "workshop/job-0/1", "tier": "huge"}')
    refused(shop.build(settings), "huge")
    (shop.folder / "hints.jsonl").write_text('{"id": "workshop/job-0/1", "tier": "mid"}')
    assert shop.build(settings).code == 0


def test_a_runs_own_copy_of_a_file_is_held_to_its_digest(shop: Shop, provider: Start) -> None:
    (shop.folder / "seeds.jsonl").write_text(GOOD)
    settings = config(provider().url, [[0]])
    settings["protocol"]["workloads"][0]["seeds"] = {"source": "import", "file": "seeds.jsonl"}
    shop.build(settings)
    (copy,) = (shop.run / "inputs").iterdir()
    copy.write_text(GOOD.replace("made 1", "made 1 TAMPERED"))
    refused(shop.resume(), "seeds.jsonl", "changed")
    copy.unlink()
    refused(shop.resume(), "seeds.jsonl", "can not be read")


@pytest.mark.parametrize("command", ["status", "resume"])
def test_a_name_that_no_folder_can_have_is_refused(shop: Shop, command: str) -> None:
    refused(stepdown(command, str(shop.folder / ("x" * 300))))


def test_a_file_that_can_not_be_written_is_named(shop: Shop, provider: Start) -> None:
    url = provider().url
    shop.build(config(url, [[0]]))
    (shop.run / "question_bank.jsonl").unlink()
    (shop.run / "question_bank.jsonl").mkdir()
    result = shop.resume()
    assert result.code == 2
    assert "question_bank.jsonl" in result.err.splitlines()[-1]


def test_a_run_folder_of_another_config_is_refused_with_the_difference_and_left_as_it_is(
    shop: Shop, provider: Start
) -> None:
    url = provider().url
    shop.build(config(url, [[0, 1]]))
    before = shop.files()
    refused(
        shop.build(config(url, [[0, 1]], protocol={"rules": {"cascade": 2}})),
        str(shop.run),
        "another protocol",
        "rules.cascade: 3 -> 2",
    )
    assert shop.files() == before
    assert shop.resume().code == 0


def test_a_folder_that_holds_something_else_is_refused_and_left_as_it_is(shop: Shop, provider: Start) -> None:
    shop.run.mkdir()
    (shop.run / "thesis.txt").write_text("precious")
    refused(shop.build(config(provider().url, [[0]])), str(shop.run), "thesis.txt")
    assert [path.name for path in shop.run.iterdir() if path.name != "lock"] == ["thesis.txt"]


def test_a_run_folder_that_cannot_be_made_is_refused(shop: Shop, provider: Start) -> None:
    (shop.folder / "file").write_text("")
    shop.run = shop.folder / "file" / "run"
    refused(shop.build(config(provider().url, [[0]])), "file/run")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_run_folder_that_cannot_be_written_is_refused(shop: Shop, provider: Start) -> None:
    shop.run.mkdir()
    shop.run.chmod(stat.S_IRUSR | stat.S_IXUSR)
    refused(shop.build(config(provider().url, [[0]])), str(shop.run))


@pytest.mark.parametrize("command", ["resume", "status"])
def test_a_folder_without_a_run_is_refused(tmp_path: Path, command: str) -> None:
    refused(stepdown(command, str(tmp_path)), str(tmp_path), "no run is here")


def test_a_ledger_that_is_none_is_refused(shop: Shop, provider: Start) -> None:
    shop.build(config(provider().url, [[0]]))
    (shop.run / "ledger.sqlite").write_bytes(b"not a database" * 1000)
    refused(shop.resume(), "ledger.sqlite")


def test_a_foreign_workload_is_named_before_its_code_runs(shop: Shop, provider: Start) -> None:
    assert "loading workload tests.workshop:Workshop" in shop.build(config(provider().url, [[0]])).err
