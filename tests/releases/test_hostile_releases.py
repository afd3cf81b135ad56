"""A release may be anybody's: whatever its files are, `verify` says what is wrong, and neither crashes nor swells."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from stepdown.builder.common.reading import LARGEST_DOCUMENT, LONGEST_LINE
from stepdown.releases.parquet import COLUMNS
from stepdown.releases.verify import verify
from tests.conftest import stepdown
from tests.releases.sealed import SealedRelease
from tests.releases.test_planted_defects import copied, problems_of

SHARD = "data/train-00000-of-00001.parquet"
FILES = ("README.md", "LICENSE.md", "croissant.json", "manifest.json", "question_bank.jsonl", "SHA256SUMS", SHARD)


@pytest.fixture
def release(sound_release: Path, tmp_path: Path) -> Path:
    return copied(sound_release, tmp_path / "release")


def problems(release: Path) -> list[str]:
    return problems_of(lambda: verify(release))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(FILES), at=st.floats(0, 1), junk=st.binary(min_size=1, max_size=40))
@example(name=SHARD, at=0.3137417783560566, junk=b"\x12")  # an index into a dictionary that is shorter
def test_any_damage_to_any_file_is_found_and_never_crashes(
    name: str, at: float, junk: bytes, sound_release: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    release = copied(sound_release, tmp_path_factory.mktemp("damaged") / "release")
    whole = (release / name).read_bytes()
    place = int(at * len(whole))
    damaged = whole[:place] + junk + whole[place + len(junk) :]
    (release / name).write_bytes(damaged)
    assert bool(problems(release)) == (damaged != whole)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_anywhere_in_a_manifest_never_crashes(
    data: st.DataObject, sound_release: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    release = copied(sound_release, tmp_path_factory.mktemp("odd") / "release")
    manifest = json.loads((release / "manifest.json").read_text())
    item: Any = manifest
    while True:
        key = data.draw(st.sampled_from(sorted(item) if isinstance(item, dict) else range(len(item))))
        if not isinstance(item[key], (dict, list)) or not item[key] or data.draw(st.booleans()):
            break
        item = item[key]
    item[key] = data.draw(VALUES)
    (release / "manifest.json").write_text(json.dumps(manifest))
    assert problems(release)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_anywhere_in_a_row_never_crashes(
    data: st.DataObject, sound_release: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    release = copied(sound_release, tmp_path_factory.mktemp("odd") / "release")
    bank = release / "question_bank.jsonl"
    lines = bank.read_text().splitlines()
    row = json.loads(lines[1])
    item: Any = row
    while True:
        key = data.draw(st.sampled_from(sorted(item) if isinstance(item, dict) else range(len(item))))
        if not isinstance(item[key], (dict, list)) or not item[key] or data.draw(st.booleans()):
            break
        item = item[key]
    item[key] = data.draw(VALUES)
    lines[1] = json.dumps(row)
    bank.write_text("\n".join([*lines, ""]))
    assert problems(release)


def test_a_line_without_end(release: Path) -> None:
    with (release / "question_bank.jsonl").open("ab") as file:
        file.truncate(LONGEST_LINE * 2)
    found = problems(release)
    assert any("question_bank.jsonl:31: the line is longer than" in line for line in found), found


@pytest.mark.parametrize("name", ["manifest.json", "README.md", "croissant.json", "LICENSE.md", "SHA256SUMS"])
def test_a_document_without_end(name: str, release: Path) -> None:
    with (release / name).open("ab") as file:
        file.truncate(LARGEST_DOCUMENT + 1)
    assert any(f"{name}: larger than" in line for line in problems(release))


@pytest.mark.parametrize("name", ["manifest.json", "croissant.json"])
@pytest.mark.parametrize("depth", [300, 900, 200_000])
def test_nesting_without_end(name: str, depth: int, release: Path) -> None:
    text = (release / name).read_text().rstrip().removesuffix("}")
    (release / name).write_text(text + ', "deep": ' + "[" * depth + "]" * depth + "}")
    assert any(line.startswith(name) for line in problems(release))


def test_nesting_in_what_a_manifest_may_hold_of_a_run(release: Path) -> None:
    def nest(data: dict[str, Any]) -> None:
        deep: Any = []
        for _ in range(400):
            deep = [deep]
        data["runs"][0]["protocol"]["deep"] = deep

    SealedRelease(release).manifest(nest)
    assert problems(release)


@pytest.mark.parametrize("name", FILES)
def test_a_pipe_is_not_read(name: str, release: Path) -> None:
    (release / name).unlink()
    os.mkfifo(release / name)
    assert any(f"{name}: is no file" in line for line in problems(release))


@pytest.mark.parametrize("name", FILES)
def test_a_link_out_of_the_folder_is_not_followed(name: str, release: Path) -> None:
    (release / name).unlink()
    (release / name).symlink_to("/etc/passwd")
    found = problems(release)
    assert any(f"{name}: is a link" in line for line in found)
    assert not any("root" in line for line in found)


def test_a_folder_of_shards_that_is_a_link_is_not_followed(release: Path) -> None:
    (release / "data").rename(release.parent / "elsewhere")
    (release / "data").symlink_to(release.parent / "elsewhere")
    assert any("data: is a link" in line for line in problems(release))


def test_yaml_that_unfolds_without_end(release: Path) -> None:
    laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    SealedRelease(release).document("README.md", lambda text: text.replace("---\n", f"---\n{laughs}", 1))
    assert problems(release) == []
    SealedRelease(release).document("README.md", lambda text: text.replace("license_link: ", "license_link: *i # ", 1))
    assert any("license_link" in line for line in problems(release))


@pytest.mark.parametrize(
    "head", ["!!python/object/apply:os.system ['true']", "? [a]\n: b", "a: 2001-99-99", "\x00", "*a"]
)
def test_yaml_that_is_more_than_data(head: str, release: Path) -> None:
    SealedRelease(release).document("README.md", lambda text: text.replace("---\n", f"---\n{head}\n", 1))
    assert any(line.startswith("README.md: ") for line in problems(release))


def test_parquet_of_other_columns(release: Path) -> None:
    pq.write_table(pa.table({"id": ["x"]}), release / SHARD)
    SealedRelease(release).seal()
    assert any(f"{SHARD}: the columns are not those of a release" in line for line in problems(release))


def test_parquet_that_is_mostly_repetition(release: Path) -> None:
    count = 20_000
    record = {name: "x" * 1000 if kind == "string" else 1 for name, kind in COLUMNS}
    arrays = [pa.array([record[name]], getattr(pa, kind)()).take(pa.array([0] * count)) for name, kind in COLUMNS]
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in COLUMNS])
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), release / SHARD, compression="zstd")
    SealedRelease(release).seal()
    assert (release / SHARD).stat().st_size < 1 << 19
    assert any(f"{SHARD}:1: " in line for line in problems(release))


def test_nothing_hostile_reaches_the_terminal(release: Path) -> None:
    def paint(rows: list[dict[str, Any]]) -> None:
        rows[0]["target_tier"] = "\x1b[31mred\x1b]0;title\x07"
        rows[0]["messages"][0]["\u202e\x1b[2J"] = "x"

    SealedRelease(release).rows(paint)
    for options in ((), ("--json",)):
        done = stepdown("verify", str(release), *options)
        assert done.code == 2
        assert not set("\x1b\x07\u202e") & set(done.out + done.err)


def test_a_hubs_own_files_beside_the_release_are_passed_over(release: Path) -> None:
    (release / ".gitattributes").write_text("*.parquet filter=lfs\n")
    (release / ".git").mkdir()
    assert problems(release) == []


def test_a_text_stored_once_and_named_often_stays_stored_once(release: Path) -> None:
    """Ten kilobytes of Parquet that say two terabytes."""
    path = release / SHARD
    table = pq.read_table(path)
    often = pa.array([0] * 20_000, pa.int32())
    long = pa.array(["[" + "0," * (20 << 20) + "0]"])
    columns = {
        name: pa.DictionaryArray.from_arrays(often, long)
        if name == "messages"
        else pa.DictionaryArray.from_arrays(often, pa.array([column[0].as_py()], column.type))
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    pq.write_table(pa.table(columns), path, compression="zstd", store_schema=False, dictionary_pagesize_limit=1 << 30)
    SealedRelease(release).seal()
    assert path.stat().st_size < 50_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = problems(release)
    assert any(f"{SHARD}:1: messages: not that of the row" in line for line in found), found
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10  # KiB


def test_notes_on_a_shard_are_refused(release: Path) -> None:
    path = release / SHARD
    pq.write_table(pq.read_table(path).replace_schema_metadata({"huggingface": '{"info": {"features": {}}}'}), path)
    SealedRelease(release).seal()
    assert any(f"{SHARD}: holds more than rows" in line for line in problems(release))


def test_a_key_that_is_given_twice_in_a_shard_is_refused(release: Path) -> None:
    path = release / SHARD
    table = pq.read_table(path)
    place = table.column_names.index("messages")
    texts = [
        text.replace('"content":', '"content": "another text", "content":', 1) for text in table["messages"].to_pylist()
    ]
    pq.write_table(table.set_column(place, "messages", pa.array(texts)), path)
    SealedRelease(release).seal()
    assert any(f"{SHARD}:1: messages: not that of the row" in line for line in problems(release))


@pytest.mark.parametrize("value", ["!!bool x", '!!int ""', "!!timestamp x", '!!float ""', "!!python/object:os.x {}"])
def test_yaml_that_its_own_reader_stumbles_over(value: str, release: Path) -> None:
    head = "license: other"
    SealedRelease(release).document("README.md", lambda text: text.replace(head, f"license: {value}", 1))
    assert any("README.md: its head is not YAML" in line for line in problems(release))


def test_a_card_that_tells_loaders_of_other_columns(release: Path) -> None:
    note = "dataset_info:\n  features:\n  - {name: id, dtype: int32}\n"
    SealedRelease(release).document("README.md", lambda text: text.replace("---\n", "---\n" + note, 1))
    assert any("README.md: dataset_info: changes what load_dataset gives" in line for line in problems(release))
