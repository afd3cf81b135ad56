"""Trains a policy on a bank of labelled rows and writes its folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepdown.builder.common.files import digest_of
from stepdown.builder.errors import BadInput
from stepdown.routing.policies.embeddings import HASHED
from stepdown.routing.policies.features import FIGURES, refuse_unknown
from stepdown.routing.policies.stored import Inputs, Kind, PolicyFile, PolicyOrigin, refuse_taken, write_policy
from stepdown.routing.policies.trained import Reader, of_length_one
from stepdown.routing.training.examples import Example, Examples, read_examples
from stepdown.routing.training.fitting import fit_logistic, scale
from stepdown.scoring.bank import Bank

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """What a policy is made with, beside the rows."""

    kind: Kind = "logistic"
    embedding: str = HASHED
    figures: tuple[str, ...] = FIGURES
    k: int = 5
    """Neighbours, of `nearest`."""
    confidence: float | None = None
    """Choose the cheapest tier that is enough with this probability; None: the likeliest tier."""


def train(
    bank: Bank, out: Path, name: str, settings: TrainSettings, notify: Callable[[str], None] = lambda line: None
) -> PolicyFile:
    """Make a policy of the bank's `train` groups in the folder `out`. `notify` is told of each stage.

    Raises BadInput: a figure that is known only later, no training rows, or a folder that is not empty.
    """
    import numpy as np

    refuse_unknown(settings.figures)
    refuse_taken(out)
    examples = read_examples(bank)
    inputs = Inputs(embedding=settings.embedding, figures=settings.figures)
    reader = Reader(inputs)
    if not reader.width:
        raise BadInput("neither an embedding nor a feature is left to learn from", field="features")
    notify(f"reading {len(examples.fitting) + len(examples.calibration)} steps ({settings.embedding})")
    fitting, apart = (reader.read([one.view for one in part]) for part in (examples.fitting, examples.calibration))
    labels, truth = _labels(examples.fitting), _labels(examples.calibration)
    notify(f"fitting ({settings.kind})")
    arrays: dict[str, NDArray[Any]]
    if settings.kind == "logistic":
        groups = [one.group for one in examples.fitting]
        made = fit_logistic(fitting, labels, groups, len(bank.tiers), (apart, truth), reader.embedder.size)
        arrays = {
            "centre": made.centre,
            "spread": made.spread,
            "weights": made.weights,
            "bias": made.bias,
            "temperature": np.array(made.temperature),
        }
        report = made.report
    else:
        points, truth = np.concatenate([fitting, apart]), np.concatenate([labels, truth])
        centre, spread = scale(points, reader.embedder.size)
        points = of_length_one((points - centre) / spread)
        arrays = {"centre": centre, "spread": spread, "points": points.astype(np.float32), "labels": truth}
        report = {}
    record = PolicyFile(
        kind=settings.kind,
        name=name,
        tiers=tuple(tier.name for tier in bank.tiers),
        inputs=inputs.model_copy(update={"embedding": reader.embedder.name}),
        settings=_settings(settings),
        trained_on=_origin(bank, examples, settings.kind),
        arrays_sha256="0" * 64,
        report={**report, "labels": _counts(bank, examples.fitting), "held_out_rows": examples.held_out_rows},
    )
    return write_policy(out, record, arrays)


def _labels(examples: Sequence[Example]) -> NDArray[int64]:
    import numpy as np

    return np.array([one.label for one in examples], dtype=np.int64)


def _settings(settings: TrainSettings) -> dict[str, Any]:
    found: dict[str, Any] = {"k": settings.k} if settings.kind == "nearest" else {}
    if settings.confidence is not None:
        found["confidence"] = settings.confidence
    return found


def _origin(bank: Bank, examples: Examples, kind: Kind) -> PolicyOrigin:
    fitted = examples.fitting + (examples.calibration if kind == "nearest" else ())
    apart = () if kind == "nearest" else examples.calibration
    manifest = bank.manifest
    named = " ".join(str(manifest[key]) for key in ("name", "version") if manifest.get(key))
    return PolicyOrigin(
        source=named or ", ".join(sorted({one.group.partition("/")[0] for one in fitted})),
        rows_sha256=digest_of(bank.rows) or "",
        rows=len(fitted),
        groups=_groups(fitted),
        calibration_rows=len(apart),
        calibration_groups=_groups(apart),
        held_out="hashed" if examples.by_hash else "test",
    )


def _groups(examples: Sequence[Example]) -> int:
    return len({one.group for one in examples})


def _counts(bank: Bank, examples: Sequence[Example]) -> dict[str, int]:
    counts = dict.fromkeys((tier.name for tier in bank.tiers), 0)
    for one in examples:
        counts[bank.tiers[one.label].name] += 1
    return counts
