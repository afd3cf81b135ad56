"""The bfcl-eval wheel: where its data lies, and its checkers, imported without the dependencies it declares."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from types import ModuleType, SimpleNamespace
from typing import Any

from stepdown.builder.common.extras import how_to_install
from stepdown.builder.errors import BadInput

PACKAGE = "bfcl_eval"
INSTALL = how_to_install("bfcl")

_importing = Lock()


def package_folder() -> Path:
    """Where the wheel is installed. Raises BadInput, saying what to install, where it is not."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise BadInput(f"bfcl needs the package bfcl-eval: {INSTALL}")
    return Path(spec.submodule_search_locations[0])


def pinned_version() -> str:
    """The wheel's version, which names its data and its checkers. Raises BadInput where it is not installed."""
    package_folder()
    try:
        return importlib.metadata.version("bfcl-eval")
    except importlib.metadata.PackageNotFoundError:
        raise BadInput(f"bfcl-eval has no metadata: {INSTALL}") from None


class _NamesAsGiven(Mapping[str, SimpleNamespace]):
    """Stands for upstream's table of models, of which the checker reads one field of one entry.

    `underscore_to_dot` says that the model's provider rejects dots in function names, so that the checker has to expect
    underscores. Here the client maps names there and back, and the checker sees BFCL's own.
    """

    def __getitem__(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(underscore_to_dot=False)

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


@cache
def ast_checker() -> Callable[..., dict[str, Any]]:
    """Upstream's `ast_checker`, from a copy of its module that is this process's own.

    The module imports `constants.model_config`, which imports the handler, and so the SDK, of every provider. While it
    is executed, a stand-in takes that place in `sys.modules`; whatever was there is put back afterwards.
    """
    heavy = f"{PACKAGE}.constants.model_config"
    stand_in = ModuleType(heavy)
    stand_in.MODEL_CONFIG_MAPPING = _NamesAsGiven()  # type: ignore[attr-defined]
    file = package_folder() / "eval_checker" / "ast_eval" / "ast_checker.py"
    spec = importlib.util.spec_from_file_location("stepdown.harnesses.bfcl._upstream_ast_checker", file)
    if spec is None or spec.loader is None:
        raise BadInput(f"bfcl-eval has no {file.name}")
    module = importlib.util.module_from_spec(spec)
    with _importing:
        before = sys.modules.get(heavy)
        sys.modules[heavy] = stand_in
        try:
            spec.loader.exec_module(module)
        finally:
            if before is None:
                del sys.modules[heavy]
            else:
                sys.modules[heavy] = before
    checker: Callable[..., dict[str, Any]] = module.ast_checker
    return checker


@cache
def language(name: str) -> Any:
    """Upstream's `Language` for "python", "java" or "javascript"."""
    return importlib.import_module(f"{PACKAGE}.constants.enums").Language(name)


@cache
def type_names() -> Mapping[str, str]:
    """Upstream's map from the types that function documents use to those of JSON Schema."""
    names: Mapping[str, str] = importlib.import_module(f"{PACKAGE}.constants.type_mappings").GORILLA_TO_OPENAPI
    return names


@cache
def prompts() -> ModuleType:
    """Upstream's prompt texts and its limit on steps."""
    return importlib.import_module(f"{PACKAGE}.constants.default_prompts")


@cache
def backend() -> ModuleType:
    """Upstream's tables of the simulated APIs."""
    return importlib.import_module(f"{PACKAGE}.constants.executable_backend_config")


@cache
def api_class(name: str) -> type[Any]:
    """The class of a simulated API."""
    found: type[Any] = getattr(importlib.import_module(backend().CLASS_FILE_PATH_MAPPING[name]), name)
    return found


@cache
def _multi_turn_checkers() -> ModuleType:
    return importlib.import_module(f"{PACKAGE}.eval_checker.multi_turn_eval.multi_turn_checker")


def state_check(model: Mapping[str, Any], accepted: Mapping[str, Any]) -> dict[str, Any]:
    """Upstream's check that the simulated APIs are in the state that the accepted calls lead to. Changes neither."""
    result: dict[str, Any] = _multi_turn_checkers().state_checker(model, accepted)
    return result


def response_check(results: Iterable[str], accepted: Iterable[str], turn: int) -> dict[str, Any]:
    """Upstream's check that all results of the turn's accepted calls are among the model's results so far."""
    result: dict[str, Any] = _multi_turn_checkers().response_checker(list(results), list(accepted), turn)
    return result
