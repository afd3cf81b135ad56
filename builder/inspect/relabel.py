"""A new version for a changed pool: what the new run has to know about the run that it relabels."""

from __future__ import annotations

import os
from pathlib import Path

from stepdown.builder.cache.inventory import Inventory
from stepdown.builder.config.loading import Config
from stepdown.builder.errors import BadInput
from stepdown.builder.run.folder import cache_of, open_for_reading
from stepdown.builder.run.ledger import Ledger, Origin


def origin_from(old: Path, folder: Path, config: Config) -> Origin:
    """What a new run in `folder`, under `config`, has from the run `old`.

    The cache is the config's where it names one, else the old run's. It must hold every response that the old run
    used, since relabelling promises that none is paid for again. Raises BadInput where it does not.
    """
    if folder.resolve() == old.resolve():
        raise BadInput("a new version needs a folder of its own", file=folder)
    with open_for_reading(old) as (ledger, protocol):
        cache = config.operation.cache or cache_of(old, ledger)
        _check_that_it_holds(cache, ledger, old)
        earlier = ledger.meta.run.origin
        run = ledger.meta.run.id
        was_strong = {model.name for model in protocol.pool.tiers[-1].models}
    is_strong = {model.name for model in config.protocol.pool.tiers[-1].models}
    departed = {*(earlier.departed if earlier else ()), *was_strong} - is_strong
    home = folder.resolve()
    cache_place, old_place = (os.path.relpath(place.resolve(), home) for place in (cache, old))
    return Origin(run, cache_place, tuple(sorted(departed)), old_place)


def _check_that_it_holds(cache: Path, ledger: Ledger, old: Path) -> None:
    with Inventory(cache) as inventory:
        found, used = inventory.count_held(ledger.call_keys())
    if found < used:
        raise BadInput(
            f"it holds {found} of the {used} responses that {old} used; `stepdown build` with `operation.cache` uses "
            "what is left of them, and pays for the rest",
            file=cache,
        )
