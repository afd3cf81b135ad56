"""What a report says of the cost of a label, and of what was saved, held against what the run's other files say."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stepdown.harnesses.planted.setup import planted_config, planted_seeds
from tests.conftest import Shop, stepdown
from tests.reports.test_report_tables import tables

TIERS = [[0, 3, 1], [2, 0, 3]]
NAMES = ("low", "mid", "mid_high", "high")
PRICES = {"low": (0.26, 0.5), "mid": (0.3, 2.0), "mid_high": (0.5, 5.0), "high": (5.0, 25.0)}
"""Of the planted pool: USD per million tokens of prompt and answer."""
HINTS = {"planted/1/1": "mid", "planted/1/2": "low", "planted/1/3": "mid", "planted/2/1": "mid_high"}
CACHING = "what prompt caching saved"
HINTED = "what hints saved, estimated"
EARLY = "what early verdicts saved, estimated"


def built(shop: Shop, early: bool = True, seeds: bool = False, hints: bool = True, **protocol: Any) -> Shop:
    source = {"tiers": TIERS}
    (shop.folder / "hints.jsonl").write_text(
        "".join(json.dumps({"id": step, "tier": tier}) + "\n" for step, tier in HINTS.items())
    )
    if hints:
        protocol["hints"] = {"source": "file", "file": "hints.jsonl"}
    imported = shop.folder / "seeds.jsonl"
    imported.write_text("".join(json.dumps(line) + "\n" for line in planted_seeds(source)))
    given = planted_config(source, {"early_verdicts": early}, protocol, seeds=imported if seeds else None)
    assert shop.build(given).code == 0
    return shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return built(Shop(tmp_path_factory.mktemp("label-costs")))


def trials(shop: Shop) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Every trial with the evidence of its step."""
    for line in shop.read("evidence.jsonl"):
        for trial in line["trials"]:
            yield line, trial


def bill(line: Mapping[str, Any], trials: Sequence[Mapping[str, Any]]) -> float:
    """What trials at a step cost: the candidate's call, then the strong model's; 20 tokens a message, 10 an answer."""
    step, usd = int(line["id"].rsplit("/", 1)[1]), 0.0
    for trial in trials:
        for number in range(step, trial["calls"] + 1):
            prompt, answer = PRICES[trial["tier"] if number == step else "high"]
            usd += (20 * 2 * number * prompt + 10 * answer) / 1e6
    return usd


def at(line: Mapping[str, Any], tier: str) -> list[Mapping[str, Any]]:
    return [trial for trial in line["trials"] if trial["tier"] == tier]


def cells(rows: Sequence[Sequence[str]], column: int) -> list[float]:
    return [float(row[column]) for row in rows if row[column] != "-"]


def test_what_labels_cost_adds_up_to_the_list_price_of_all_that_was_needed(shop: Shop) -> None:
    *rows, whole = tables(shop.run)["USD per label"]
    needed = shop.manifest()["needed"]
    assert [row[1] for row in rows] == [*NAMES, "seeds, hints, draws"]
    assert sum(cells(rows, 3)) == int(whole[3]) == sum(needed["calls"].values())
    assert float(whole[4]) == pytest.approx(needed["list_price_usd"], abs=1e-4)
    assert float(whole[5]) == pytest.approx(needed["list_price_usd"] / 6, abs=1e-5)
    for row in rows[:-1]:
        fresh = sum(
            trial["calls"] - int(line["id"].rsplit("/", 1)[1]) + 1
            for line, trial in trials(shop)
            if line["lock"]["tier"] == row[1]
        )
        assert int(row[3]) == fresh, "a trial at step i of n made n - i + 1 calls"


def test_early_verdicts_saved_the_calls_up_to_the_limit(shop: Shop) -> None:
    ((_, cut, calls, usd, unpriced),) = tables(shop.run)[EARLY]
    lost = [trial for _, trial in trials(shop) if trial["verdict"] == "fail" and trial["calls"] < trial["limit"]]
    assert (int(cut), int(calls)) == (len(lost), sum(trial["limit"] - trial["calls"] for trial in lost))
    assert float(usd) > 0
    assert unpriced == "0"


def test_no_more_is_told_of_them_than_is_known(tmp_path: Path) -> None:
    played = built(Shop(tmp_path), early=False)
    assert EARLY not in tables(played.run), "no trial was cut off"
    older = Shop(tmp_path / "older")
    older.folder.mkdir()
    built(older, seeds=True)
    ((_, cut, calls, _, unpriced),) = tables(older.run)[EARLY]
    assert 0 < int(unpriced) <= int(cut), "steps of an imported seed have no bill"
    assert int(calls) > 0
    with closing(sqlite3.connect(older.run / "ledger.sqlite")) as db:
        db.execute("DROP TABLE cut_off")
    assert EARLY not in tables(older.run), "a run of before does not tell"


def test_hints_are_weighed_by_probes_left_out_above_and_asked_for(shop: Shop) -> None:
    ((_, hints, left_out, priced, spared, above, asking, saved),) = tables(shop.run)[HINTED]
    hinted = {line["id"]: line for line in shop.read("evidence.jsonl") if line["hint"]}
    tried = {step: {trial["tier"] for trial in line["trials"]} for step, line in hinted.items()}
    label = {step: NAMES.index(line["lock"]["tier"]) for step, line in hinted.items()}
    expected = [tier for step in hinted for tier in NAMES[: min(label[step], 3)] if tier not in tried[step]]
    assert (int(hints), int(left_out)) == (len(HINTS), len(expected))
    means = {row[1]: float(row[3]) for row in tables(shop.run)["what probes of a tier below the label cost"]}
    failed: dict[str, list[float]] = {}
    for line in shop.read("evidence.jsonl"):
        for tier in NAMES[: NAMES.index(line["lock"]["tier"])]:
            if tried_there := at(line, tier):
                failed.setdefault(tier, []).append(bill(line, tried_there))
    assert means == pytest.approx({tier: sum(usd) / len(usd) for tier, usd in failed.items()}, abs=1e-5)
    assert int(priced) == sum(tier in means for tier in expected)
    assert float(spared) == pytest.approx(sum(means.get(tier, 0) for tier in expected), abs=1e-4)
    assert float(asking) == 0, "a file is not asked"
    higher = sum(bill(line, at(line, tier)) for step, line in hinted.items() for tier in NAMES[label[step] + 1 :])
    assert float(above) == pytest.approx(higher, abs=1e-4)
    assert higher > 0, "planted/1/1 was probed at the tier of its hint, and its label is lower"
    assert float(saved) == pytest.approx(float(spared) - float(above), abs=2e-4)


def test_without_hints_nothing_is_said_of_them(tmp_path: Path) -> None:
    assert HINTED not in tables(built(Shop(tmp_path), hints=False).run)


def test_a_run_without_prices_says_so(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    given = planted_config({"tiers": [[0]]})
    for tier in given["protocol"]["pool"]["tiers"]:
        for model in tier["models"]:
            del model["price"]
    assert shop.build(given).code == 0
    assert "What a label costs: Not told: no call of this run has a price." in stepdown(
        "report", str(shop.run), "--tables-only"
    ).out.replace("\n", " ")


def test_every_note_is_shown_whole(shop: Shop) -> None:
    sections = json.loads(stepdown("report", str(shop.run), "--json").out)["sections"]
    assert all(len(table["note"]) <= 400 for table in sections["per-label"])
