"""Small models that run here: their files, and that they give one text for one prompt."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import multiprocessing.pool
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepdown.builder.config.operation import OperationConfig
from stepdown.builder.config.pool import Model, Pool, Weights
from stepdown.builder.config.validation import read_yaml, validated
from stepdown.builder.errors import BadInput
from stepdown.builder.models import Client, local
from stepdown.builder.records import Prefix, Stop

POOL = Path(__file__).parent.parent / "configs" / "pools" / "quickstart.yaml"
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather.today",
        "description": "Weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
ASKED = Prefix.start([{"role": "user", "content": "What is the weather in Paris?"}], [WEATHER])


def model_of(weights: Weights) -> Model:
    return Model(name="tiny", model="local/tiny", weights=weights)


def split(folder: Path, *parts: bytes) -> Weights:
    folder.mkdir()
    for number, part in enumerate(parts):
        (folder / f"w.gguf.part{number}").write_bytes(part)
    return Weights(sha256=hashlib.sha256(b"".join(parts)).hexdigest(), file=str(folder / "w.gguf.part*"))


@pytest.fixture(autouse=True)
def own_cache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if "local" not in request.keywords:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_quickstart_pool_is_one() -> None:
    pool = validated(Pool, read_yaml(POOL), file=POOL)
    assert [(tier.name, tier.id) for tier in pool.tiers] == [("low", 0), ("mid", 1), ("high", 3)]


def test_a_runtime_that_the_system_can_not_load_is_told_from_one_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = "libgomp.so.1: cannot open shared object file"
    (tmp_path / "xllamacpp.py").write_text(f"raise ImportError({lacking!r})\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    with pytest.raises(BadInput, match=f"can not be loaded: {lacking}: install the system's package"):
        local.check(model_of(split(tmp_path / "parts", b"one")))


def test_parts_are_joined_once_in_name_order(tmp_path: Path) -> None:
    model = model_of(split(tmp_path / "parts", b"one", b"two", b"three"))
    path = local.locate_weights(model)
    assert path.read_bytes() == b"onetwothree"
    assert path.parent == tmp_path / "cache" / "stepdown" / "weights"
    before = path.stat().st_ino
    assert local.locate_weights(model).stat().st_ino == before
    assert list(path.parent.iterdir()) == [path], "nothing half-written is left"


def test_a_damaged_joined_file_is_made_again(tmp_path: Path) -> None:
    model = model_of(split(tmp_path / "parts", b"one", b"two"))
    local.locate_weights(model).write_bytes(b"damaged")
    assert local.locate_weights(model).read_bytes() == b"onetwo"


def test_processes_that_join_at_once_all_get_the_whole_file(tmp_path: Path) -> None:
    model = model_of(split(tmp_path / "parts", b"x" * 3_000_000, b"y" * 3_000_000))
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        paths = pool.map(local.locate_weights, [model] * 6)
    assert set(paths) == {local.locate_weights(model)}


def test_a_cache_folder_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(split(tmp_path / "parts", b"one", b"two"))
    (tmp_path / "file").write_text("")
    for cache in (tmp_path / "file", Path("/proc/nowhere")):
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
        with pytest.raises(BadInput, match=rf"{cache}/stepdown/weights.*set XDG_CACHE_HOME") as raised:
            local.locate_weights(model)
        assert "\n" not in str(raised.value)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    with pytest.raises(BadInput, match=r"file/.cache/stepdown/weights.*set XDG_CACHE_HOME"):
        local.locate_weights(model)


def test_weights_with_another_digest_are_refused(tmp_path: Path) -> None:
    (tmp_path / "w.gguf").write_bytes(b"other")
    with pytest.raises(BadInput, match="not the file with the digest 000"):
        local.locate_weights(model_of(Weights(sha256="0" * 64, file=str(tmp_path / "w.gguf"))))
    split(tmp_path / "parts", b"one", b"two")
    with pytest.raises(BadInput, match="not the file with the digest 000"):
        local.locate_weights(model_of(Weights(sha256="0" * 64, file=str(tmp_path / "parts" / "w.gguf.part*"))))


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (Weights(sha256="0" * 64, file="/no/such/file.gguf"), "no file /no/such/file.gguf"),
        (
            Weights(sha256="0" * 64, package="no_such_package", file="w"),
            r"no_such_package is not installed: stepdown install local",
        ),
        (Weights(sha256="0" * 64, package="no.such.package", file="w"), r"is not installed: stepdown install local"),
        (
            Weights(sha256="0" * 64, package="json", file="w.gguf"),
            r"no file w.gguf in the package json: stepdown",
        ),
    ],
)
def test_what_is_missing_is_named_with_what_to_install(weights: Weights, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        local.locate_weights(model_of(weights))


@pytest.fixture(scope="module")
def pool() -> Pool:
    return validated(Pool, read_yaml(POOL), file=POOL)


@pytest.fixture(scope="module")
def client(pool: Pool) -> Iterator[Client]:
    with Client(pool.by_name.values(), OperationConfig()) as client:
        yield client


@pytest.mark.local
def test_doctor_s_line_says_where_the_weights_are(pool: Pool) -> None:
    assert "MB" in local.check(pool.by_name["smollm2-135m"])


@pytest.mark.local
@pytest.mark.parametrize("name", ["smollm2-135m", "gemma-3-270m"])
def test_a_local_model_calls_a_function(name: str, pool: Pool, client: Client) -> None:
    response = client.complete(pool.by_name[name], ASKED).response
    assert [call.name for call in response.tool_calls] == ["weather.today"]
    assert isinstance(json.loads(response.tool_calls[0].arguments)["city"], str)
    assert response.usage.prompt > 50
    assert "/" not in response.extra["model"], "no path of this machine"


@pytest.mark.local
def test_one_prompt_has_one_text(pool: Pool, client: Client) -> None:
    """Again, after a restart, and while the other model is at work."""
    small, other = pool.by_name["smollm2-135m"], pool.by_name["gemma-3-270m"]
    plain = Prefix.start([{"role": "user", "content": "Tell me about rivers."}])
    small = small.model_copy(update={"parameters": {"temperature": 0, "max_tokens": 40}})

    def text(of: Client) -> str:
        return of.complete(small, plain).response.content

    first = text(client)
    assert first
    with Client([small, other], OperationConfig()) as fresh:
        assert text(fresh) == first
        with multiprocessing.pool.ThreadPool(3) as threads:
            beside = threads.apply_async(fresh.complete, (other, ASKED))
            assert threads.map(text, [fresh] * 3) == [first] * 3
            assert beside.get().response.tool_calls


@pytest.mark.local
def test_a_prompt_beyond_the_context_is_an_overflow(pool: Pool, client: Client) -> None:
    long = Prefix.start([{"role": "user", "content": "hello " * 3000}])
    assert client.complete(pool.by_name["smollm2-135m"], long).response.stop is Stop.OVERFLOW


@pytest.mark.local
def test_nobody_else_gets_in(pool: Pool) -> None:
    import httpx

    runtime = local.Runtime()
    address = runtime.start(pool.by_name["smollm2-135m"])
    assert address.url.startswith("http://127.0.0.1:")
    request = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
    assert httpx.post(f"{address.url}/v1/chat/completions", json=request).status_code == 401
    runtime.close()
