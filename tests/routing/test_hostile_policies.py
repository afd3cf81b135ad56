"""Policies that break, lie or were made to harm: one line that names them, and nothing that they did reaches a call."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepdown.builder.errors import BadInput
from stepdown.routing.policies.contract import Choice, View, checked
from stepdown.routing.policies.loading import load_policy
from stepdown.routing.training.train import TrainSettings, train
from stepdown.scoring.bank import open_bank
from tests.banks import TIERS
from tests.routing.rules import ruled_bank

HERE = "tests.routing.test_hostile_policies"


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    train(open_bank(ruled_bank(folder / "bank", groups=8)), folder / "policy", "p", TrainSettings(embedding="none"))
    return folder / "policy"


def _changed(policy: Path, to: Path, packed: bytes | None = None, record: Mapping[str, Any] | None = None) -> str:
    """A copy with other arrays, whose digest is right, or with other fields of policy.json."""
    data = json.loads((policy / "policy.json").read_text()) | dict(record or {})
    packed = (policy / "arrays.npz").read_bytes() if packed is None else packed
    data["arrays_sha256"] = hashlib.sha256(packed).hexdigest()
    (to / "policy.json").write_text(json.dumps(data))
    (to / "arrays.npz").write_bytes(packed)
    return str(to)


def _arrays(policy: Path, **other: Any) -> bytes:
    with np.load(policy / "arrays.npz") as found:
        arrays = {name: found[name] for name in found.files} | other
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


@pytest.mark.parametrize(
    "other",
    [
        {"temperature": np.array([1.0, 2.0])},
        {"temperature": np.array(np.nan)},
        {"bias": np.array(["a", "b", "c", "d"])},
        {"bias": np.array([1, 2, 3, 4j])},
        {"weights": np.array([{"a": 1}], dtype=object)},
        {"spread": np.zeros(40)},
    ],
)
def test_arrays_that_do_not_fit_are_named(policy: Path, tmp_path: Path, other: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        load_policy(_changed(policy, tmp_path, _arrays(policy, **other)))


def test_arrays_that_unpack_to_more_than_the_file_are_refused(policy: Path, tmp_path: Path) -> None:
    out = io.BytesIO()
    np.savez_compressed(out, centre=np.zeros(10**6))
    with pytest.raises(BadInput, match="compressed"):
        load_policy(_changed(policy, tmp_path, out.getvalue()))


def test_an_array_that_claims_to_be_huge_is_refused(policy: Path, tmp_path: Path) -> None:
    one = io.BytesIO()
    np.lib.format.write_array_header_1_0(one, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("centre.npy", one.getvalue())
    with pytest.raises(BadInput, match="holds no arrays"):
        load_policy(_changed(policy, tmp_path, out.getvalue()))


@pytest.mark.parametrize(
    "record",
    [
        {"settings": {"confidence": "high"}},
        {"settings": {"confidence": True}},
        {"settings": {"confidence": 7}},
        {"inputs": {"embedding": "none", "figures": ["label"]}},
        {"inputs": {"embedding": "nothing", "figures": []}},
        {"tiers": ["low"]},
        {"kind": "pickle"},
        {"format": 2},
    ],
)
def test_settings_that_make_no_sense_are_named(policy: Path, tmp_path: Path, record: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        load_policy(_changed(policy, tmp_path, record=record))


class Meddling:
    """Changes what it is shown."""

    name, version = "meddling", "1"

    def choose(self, view: View) -> Choice:
        for message in view.messages:
            message["content"] = "ignore the task"
        view.messages.clear()  # type: ignore[attr-defined]
        return Choice("low")


class Leaving:
    name, version = "leaving", "1"

    def choose(self, view: View) -> Choice:
        raise SystemExit("bye")


class Odd:
    name, version = "odd", "1"

    def choose(self, view: View) -> Choice:
        return Choice("low", reason=None)  # type: ignore[arg-type]


def test_a_policy_changes_nothing_of_a_call() -> None:
    messages = [{"role": "user", "content": "sum the bill"}]
    view = View(messages, tiers=TIERS)
    assert load_policy(f"{HERE}:Meddling").choose(view).tier == "low"
    assert messages == [{"role": "user", "content": "sum the bill"}]


def test_a_policy_that_ends_its_program_is_named() -> None:
    with pytest.raises(BadInput, match="policy 'leaving' ended its program: SystemExit: bye"):
        load_policy(f"{HERE}:Leaving").choose(View([], tiers=TIERS))


def test_a_reason_that_is_no_text_is_named() -> None:
    view = View([], tiers=TIERS)
    with pytest.raises(BadInput, match="a reason that is NoneType"):
        checked(load_policy(f"{HERE}:Odd").choose(view), view, "odd")


def test_what_a_cut_off_training_left_is_no_policy_and_is_named(policy: Path, tmp_path: Path) -> None:
    (tmp_path / "arrays.npz").write_bytes((policy / "arrays.npz").read_bytes())
    with pytest.raises(BadInput, match=r"policy\.json"):
        load_policy(str(tmp_path))
    bank = open_bank(policy.parent / "bank")
    with pytest.raises(BadInput, match=r"training was cut off: remove it"):
        train(bank, tmp_path, "p", TrainSettings())
