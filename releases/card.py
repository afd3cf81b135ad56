"""The dataset card: a YAML head that Hugging Face reads, and what a person must know before using the labels.

The head and the block between the two marks are functions of the manifest, and `verify` holds them to that; all else on
a card may be edited.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from stepdown.builder.common.text import printable
from stepdown.releases.layout import ANY, Manifest, RunManifest
from stepdown.releases.licenses import limits_of
from stepdown.releases.parquet import SHARD_NAME

BEGIN, END = "<!-- counts -->", "<!-- end of counts -->"
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def head_of(manifest: Manifest) -> dict[str, Any]:
    """The YAML head."""
    shards = [found[1] for name in manifest.files if (found := SHARD_NAME.fullmatch(name))]
    return {
        "pretty_name": manifest.name,
        "license": "other",
        "license_name": "per-workload",
        "license_link": "LICENSE.md",
        "language": ["en"],
        "task_categories": ["text-classification"],
        "size_categories": [size_category(manifest.rows)],
        "tags": ["llm-routing", "agents", "model-selection", "step-level", "cost"],
        "configs": [
            {
                "config_name": "default",
                "default": True,
                "data_files": [
                    {"split": split, "path": f"data/{split}-*.parquet"} for split in manifest.splits if split in shards
                ],
            }
        ],
        "stepdown": {
            "version": manifest.version,
            "rows": manifest.rows,
            "instances": dict(manifest.instances),
            "labels": {name: dict(counts) for name, counts in manifest.labels.items()},
            "splits": {name: split.rows for name, split in manifest.splits.items()},
        },
    }


def size_category(rows: int) -> str:
    """Hugging Face's name for a number of rows.

    >>> size_category(999), size_category(1000), size_category(2_000_000)
    ('n<1K', '1K<n<10K', '1M<n<10M')
    """
    return next((name for below, name in _SIZES if rows < below), "1M<n<10M" if rows < 10_000_000 else "n>10M")


def card(manifest: Manifest) -> str:
    """The whole card."""
    head = yaml.safe_dump(head_of(manifest), sort_keys=False, allow_unicode=True)
    parts = [
        f"# {_plain(manifest.name)}",
        "For every LLM call inside a successful agent trajectory: the cheapest model tier that still let the whole "
        "task pass, proved by executing the mixed-model trajectory.",
        *(f"Published by {_plain(by)}." for by in [manifest.creator] if by),
        *(["**Partial**: a run had instances left to do; they are not here."] if manifest.partial else []),
        _LOADING,
        _ROW,
        "## What a label says\n\n" + _semantics(manifest),
        counts_block(manifest),
        _splits(manifest),
        "## How the labels were made\n\n" + "\n\n".join(_run(run) for run in manifest.runs),
        "## Audit\n\n" + "\n".join(_audits(manifest)),
        "## Left out\n\n" + "\n".join(_left_out(manifest)),
        _LIMITS + "".join(f"\n- {line}" for line in _own_limits(manifest)),
        _USE,
        "## Licences\n\nSee LICENSE.md: the labels and the texts of each workload stand under different terms.",
    ]
    return f"---\n{head}---\n\n" + "\n\n".join(parts) + "\n"


_LOADING = """## Loading

```python
import datasets, json

splits = datasets.load_dataset("DIR")          # `train` and, where groups are held out, `test`
every_row = datasets.concatenate_datasets(list(splits.values()))   # in the order of question_bank.jsonl
messages = json.loads(every_row[0]["messages"])
```

`messages` and `tools` are JSON text in the Parquet files that `load_dataset` reads, since chat messages have no fixed
shape; in `question_bank.jsonl`, the same rows, they are JSON. `sha256sum -c SHA256SUMS` and `stepdown verify DIR` check
the folder, `stepdown score DIR PREDICTIONS` scores a router on it. croissant.json describes it to other tools."""

_ROW = """## A row

| field | meaning |
|---|---|
| `id` | `benchmark/instance_id/step_index` |
| `benchmark`, `instance_id` | the workload and its task |
| `step_index`, `total_steps` | the step, from 1, of the final mixed trajectory |
| `messages`, `tools` | what a router sees before the step; earlier steps are what the locked models really did |
| `target_tier`, `target_tier_id` | the label |
| `group` | what must be held out whole: repository, conversation, meeting, function family; else the task itself |
| `split` | `train` or `test`: all rows of a group are in one |"""

_LIMITS = """## Known limits

- A label speaks of one pool, one harness and one prefix. With other models, or after other earlier steps, it may be
  another.
- One accepted execution locks a tier unless the rules above ask for more: a label may be lucky, or unlucky.
- Labels are searched from the first step to the last; another order may give other ones.
- Only tasks that the strong model solved are here: nothing is said about those that it did not.
- The benchmarks are public; models may have seen them."""

_USE = """## Intended use

Training and scoring routers that choose a model tier per step; studying where in a trajectory strong models are needed.
Choose thresholds, baselines and fixed tiers on `train`, report on `test`, and resample whole trajectories for
intervals.

## Out of scope

Ranking single models; claims about tasks, languages or pools that are not here; training a model to solve the
benchmarks; any decision about people. A tier says nothing about the safety of an action."""


def _semantics(manifest: Manifest) -> str:
    names = " < ".join(f"`{_plain(tier.name)}` ({tier.id})" for tier in manifest.tiers)
    strong = _plain(manifest.tiers[-1].name)
    return (
        f"Tiers, cheapest first: {names}. A step's label is the cheapest tier of which a model made the step and the "
        f"task still passed, earlier steps as they were locked, later ones by the strong model. `{strong}` means "
        "that the tiers that were tried below it failed. A model that could not be reached is not a model that "
        "failed: such steps have no label, and their task is not here."
    )


def counts_block(manifest: Manifest) -> str:
    """The tables of counts, between their marks."""
    tiers = [tier.name for tier in manifest.tiers]
    lines = [
        BEGIN,
        "## Counts",
        "",
        _cells(["workload", "instances", "rows", *tiers]),
        _cells(["---", *["---:"] * (2 + len(tiers))]),
    ]
    for name, labels in manifest.labels.items():
        numbers = [manifest.instances.get(name, 0), sum(labels.values()), *(labels.get(tier, 0) for tier in tiers)]
        lines.append(_cells([name, *map(str, numbers)]))
    lines += ["", _cells(["split", "rows", "instances", "groups"]), _cells(["---", "---:", "---:", "---:"])]
    for name, split in manifest.splits.items():
        lines.append(_cells([name, str(split.rows), str(split.instances), str(split.groups)]))
    return "\n".join([*lines, "", f"{manifest.rows} rows in all.", END])


def _splits(manifest: Manifest) -> str:
    share, seed = manifest.holdout.share, manifest.holdout.seed
    return (
        f"A group is in `test` if a hash of seed {seed}, its benchmark and its name falls below {share:g}; so a "
        "group stays where it is when a release grows, and shares are met only on average."
    )


def _run(run: RunManifest) -> str:
    pool = run.pool
    lines = [f"**Pool `{_plain(pool.get('version'))}`**", "", _cells(["tier", "models"]), _cells(["---", "---"])]
    for tier in _dicts(pool.get("tiers")):
        models = tier.get("models")
        lines.append(_cells([str(tier.get("name")), ", ".join(map(str, models if isinstance(models, list) else []))]))
    rules = run.protocol.get("rules")
    lines += [
        "",
        "Harnesses: "
        + ", ".join(f"{_plain(w.get('benchmark'))} `{_plain(w.get('version'))}`" for w in _dicts(run.workloads))
        + ".",
        f"Rules: {_said(rules if isinstance(rules, dict) else {})}. Hints: "
        f"{_plain(_part(run.protocol, 'hints', 'source'))}.",
        f"Protocol digest: `{_plain(run.protocol_digest)}`. Model calls that the protocol needed, at list price: "
        f"{_plain(run.needed.get('list_price_usd'))} USD.",
    ]
    lines += _exams(run)
    note = run.seeds.get("note")
    return "\n".join([*lines, *([str(note)] if note else [])])


def _exams(run: RunManifest) -> Iterator[str]:
    """What probes say of the judges: answers of known worth that were put to them among the real ones."""
    for judge, found in _dict(_dict(run.judge).get("exam")).items():
        yield (
            f"Judge `{_plain(judge)}`, asked among the real cases about answers of known worth: it failed "
            f"{_count_of(found, 'detection')} wrong ones and did not pass {_count_of(found, 'false_alarm')} good ones."
        )


def _count_of(found: Any, name: str) -> str:
    share = _dict(_dict(found).get(name))
    return f"{_plain(share.get('count'))} of {_plain(share.get('of'))}"


def _said(rules: Mapping[str, Any]) -> str:
    """The rules in words: `acceptance` is how many of how many samples."""
    words = []
    for name, value in rules.items():
        if name == "acceptance" and isinstance(value, dict):
            value = f"{value.get('passes')} of {value.get('of')}"
        words.append(f"{_plain(name)} {_plain(value)}")
    return ", ".join(words)


def _part(record: Mapping[str, Any], *names: str) -> Any:
    value: Any = record
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _audits(manifest: Manifest) -> Iterator[str]:
    for run in manifest.runs:
        pool, audit = _plain(run.pool.get("version")), run.audit
        if audit is None:
            yield f"- Pool `{pool}`: no step of these workloads was to be audited by a person."
            continue
        yield (
            f"- Pool `{pool}`: {_plain(audit.get('settled'))} of {_plain(audit.get('sampled'))} sampled steps "
            f"settled{_by_themselves(audit)} by {_plain(_people(audit.get('reviewers')))}; "
            f"{_plain(audit.get('tight'))} tight, {_plain(audit.get('lowered'))} lowered by one tier on a reviewer's "
            "word (no execution has proved those)."
        )


def _by_themselves(audit: Mapping[str, Any]) -> str:
    """How many sampled steps nobody was asked about; nothing where there are none, as in runs that asked about all."""
    lowest = audit.get("lowest", 0)
    return f": {_plain(lowest)} by themselves, since their label is the lowest tier, the others" if lowest else ""


def _people(reviewers: Any) -> str:
    count = len(reviewers) if isinstance(reviewers, (list, dict)) else reviewers
    return "1 reviewer" if count == 1 else f"{count} reviewers"


def _left_out(manifest: Manifest) -> Iterator[str]:
    found = False
    for benchmark, reasons in sorted(manifest.left_out.items()):
        for reason, count in sorted(reasons.items()):
            found = True
            where = "instances of any workload" if benchmark == ANY else _plain(benchmark)
            yield f"- {where}: {count}, {_plain(reason)}"
    if not found:
        yield "Every instance that the runs began with is here."


def _own_limits(manifest: Manifest) -> Iterable[str]:
    for name in manifest.labels:
        yield from (_plain(sentence, 1000) for sentence in limits_of(name, manifest.runs))
    if manifest.allowed_names:
        names = ", ".join(f"`{_plain(name)}` ({rows} rows)" for name, rows in sorted(manifest.allowed_names.items()))
        yield f"Rows name these models of the pool, which was allowed: {names}."
    if any(run.seeds.get("note") for run in manifest.runs):
        yield "Some seeds come from the benchmark's accepted answers, not from a model that ran."


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _plain(value: Any, longest: int = 200) -> str:
    """Text of other people inside Markdown: one line, nothing that it could be taken for."""
    text = printable(str(value), longest)
    return "".join("\\" + char if char in "|<>[]*" else "'" if char == "`" else char for char in text)


def _cells(cells: Iterable[str]) -> str:
    return "| " + " | ".join(_plain(cell) for cell in cells) + " |"
