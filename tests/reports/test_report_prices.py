"""A report prices a run by its own pool and the usage it recorded, and names the rates in every table of costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import workshop
from tests.banks import Life, write_bank
from tests.conftest import Shop, stepdown
from tests.provider import Provider

PRICES = {
    "novice": {"input": 100.0, "output": 200.0},
    "hand": {"input": 300.0, "output": 600.0},
    "master": {"input": 1000.0, "cache_read": 100.0, "output": 2000.0},
}
COSTS = {
    "cost by label and at the strong tier",
    "the longest trajectories",
    "the case, step by step",
    "the build",
    "paid by model and purpose",
    "USD per label",
    "what prompt caching saved",
}


def tables(folder: Path, *options: str) -> dict[str, dict[str, Any]]:
    result = stepdown("report", str(folder), "--json", *options)
    assert result.code == 0, result.err
    sections: dict[str, list[dict[str, Any]]] = json.loads(result.out)["sections"]
    return {table["title"]: table for found in sections.values() for table in found}


def built(folder: Path, prices: dict[str, dict[str, float]]) -> Path:
    """A run of one task of two steps: the first falls to the novice, the second to the master."""
    folder.mkdir(exist_ok=True)
    shop = Shop(folder)
    with Provider(workshop.ABILITIES) as provider:
        config = workshop.config(provider.url, [[0, 2]])
        for tier in config["protocol"]["pool"]["tiers"]:
            (model,) = tier["models"]
            model["price"] = prices.get(model["name"], {})
        assert shop.build(config).code == 0
    return shop.run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("prices"), PRICES)


def test_a_run_is_priced_by_its_own_pool_and_recorded_usage(run: Path) -> None:
    found = tables(run)
    # 11 prompt tokens and 3 of an answer a call, as the provider counted them. By label: the novice's call, then the
    # master's, who has to write the prompt anew. Always the master: the second call reads 11 tokens.
    novice, cold, warm = 11 * 100 + 3 * 200, 11 * 1000 + 3 * 2000, 11 * 100 + 3 * 2000
    (row,) = found["cost by label and at the strong tier"]["rows"]
    assert row[2:4] == [f"{(cold + warm) / 1e6:.4f}", f"{(novice + cold) / 1e6:.4f}"]
    case = found["the case, step by step"]["rows"]
    assert [(line[3], line[5]) for line in case] == [("11", "3"), ("11", "3")]
    assert [line[6:] for line in case] == [
        [f"{cold / 1e6:.5f}", f"{novice / 1e6:.5f}"],
        [f"{warm / 1e6:.5f}", f"{cold / 1e6:.5f}"],
    ]


def test_every_table_of_costs_names_its_rates(run: Path, tmp_path: Path) -> None:
    found = tables(run)
    assert found.keys() >= COSTS
    for title in COSTS:
        assert found[title]["note"].startswith("Rates: list prices of the run's own pool"), title
    out = stepdown("report", str(run), "--tables-only").out
    assert out.count("Rates: list prices of the run's own pool") == len(COSTS)
    page = tmp_path / "report.html"
    assert stepdown("report", str(run), "--out", str(page)).code == 0
    assert page.read_text().count("Rates: list prices of the run") == len(COSTS) + 1
    assert "paper_rates" not in page.read_text()


def test_a_card_that_is_named_replaces_the_pool_s_prices_and_is_named_itself(run: Path, tmp_path: Path) -> None:
    rate = "{input: 1, cache_read: 1, cache_write: 1, output: 1}"
    card = tmp_path / "mine.yaml"
    card.write_text("".join(f"{tier}: {rate}\n" for tier in ("low", "mid", "high")))
    table = tables(run, "--rates", str(card))["cost by label and at the strong tier"]
    assert table["note"].startswith("Rates: those of mine.yaml, by tier;")
    assert table["rows"][0][2:4] == ["0.0000", "0.0000"]


def test_a_pool_whose_strong_model_has_no_price_is_said_to_be_priced_otherwise(tmp_path: Path) -> None:
    table = tables(built(tmp_path / "free", {"novice": PRICES["novice"]}))["cost by label and at the strong tier"]
    assert table["note"].startswith("Rates: the paper's, by tier (paper_rates.yaml): the run's pool has no price for")
    assert "'master'" in table["note"]


def test_a_release_says_that_it_holds_no_prices_and_how_tokens_are_counted(tmp_path: Path) -> None:
    table = tables(write_bank(tmp_path, [Life([0, 3])]))["cost by label and at the strong tier"]
    assert "the paper's, by tier (paper_rates.yaml): a release holds no prices" in table["note"]
    assert "of an answer that no row shows, the trajectory's mean, else 500" in table["note"]
