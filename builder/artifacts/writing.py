"""Rows, evidence, audit queue, probes and manifest of a run: functions of its protocol, responses and verdicts only.

`spend.json` alone says what was really paid, and may differ between two runs of one protocol.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack

from stepdown.builder.artifacts.evidence import evidence_of
from stepdown.builder.artifacts.labelled import read_labelled_instances, row_of
from stepdown.builder.artifacts.manifest import manifest_of
from stepdown.builder.artifacts.names import EVIDENCE, MANIFEST, PROBES, QUEUE, ROWS, SPEND
from stepdown.builder.artifacts.probes import probes_of
from stepdown.builder.artifacts.queue import NameMask, queue_entry, read_lower_answers
from stepdown.builder.artifacts.sampling import is_sampled
from stepdown.builder.artifacts.spend import spend_of
from stepdown.builder.artifacts.summary import Summary, count_held_back
from stepdown.builder.common.files import RecordFile, digest_of, write_document
from stepdown.builder.run.folder import RunFolder
from stepdown.builder.run.ledger import seed_model_of
from stepdown.builder.run.spent import read_paid_file


def write_artifacts(run: RunFolder, multi_step: Mapping[str, bool]) -> Summary:
    """Write the run's files. Where they are there and nothing was recorded since, they stay: delete one to have all
    written anew.

    `multi_step` says of each benchmark whether its steps are audited.
    """
    return _read_current(run) or _write(run, multi_step)


def _read_current(run: RunFolder) -> Summary | None:
    """The summary of the files that are there; None where they are not what would be written now."""
    digests = run.ledger.artifacts.digests
    if digests is None or any(digest_of(run.path / name) != found for name, found in digests.items()):
        return None
    spend = json.loads((run.path / SPEND).read_bytes())
    if not {"unbooked", "estimated_calls", "prompt_cache"} <= spend.keys():
        return None  # it was written before these were told
    if spend["calls"] + spend["unbooked"]["calls"] != read_paid_file(run.path).calls:
        return None  # a trial that has not ended was paid for since
    manifest = json.loads((run.path / MANIFEST).read_bytes())
    summary = Summary(instances=Counter(manifest["instances"]), unfinished=manifest["unfinished"])
    for groups, found in (
        (summary.labels, manifest["labels"]),
        (summary.drops, manifest["dropped"]),
        (summary.blocked, manifest["blocked"]),
        (summary.seed_models, manifest["seeds"]["models"]),
    ):
        groups.update({benchmark: Counter(counts) for benchmark, counts in found.items()})
    return summary


def _write(run: RunFolder, multi_step: Mapping[str, bool]) -> Summary:
    protocol, ledger, pool = run.config.protocol, run.ledger, run.config.protocol.pool
    summary, mask = Summary(), NameMask(protocol.models.values())
    names = (ROWS, EVIDENCE, QUEUE, *((PROBES,) if protocol.rules.probe != "none" else ()))
    probed: Counter[str] = Counter()
    with ExitStack() as stack:
        opened = {name: stack.enter_context(RecordFile(run.path / name)) for name in names}
        rows, evidences, queue = opened[ROWS], opened[EVIDENCE], opened[QUEUE]
        for instance in read_labelled_instances(ledger):
            benchmark = instance.record.benchmark
            summary.instances[benchmark] += 1
            summary.seed_models[benchmark][seed_model_of(instance.record, instance.trials)] += 1
            for index, lock in enumerate(instance.locks, 1):
                row = row_of(instance, index, pool)
                rows.write(row.to_json())
                evidences.write(evidence_of(instance, index, pool))
                summary.labels[benchmark][pool.tiers[lock.tier].name] += 1
                asked = multi_step.get(benchmark, True) and lock.tier > 0  # a label of the lowest tier settles itself
                if asked and is_sampled(protocol.audit.seed, row.id, protocol.audit.rate):
                    lower = read_lower_answers(ledger, instance.trials, index, lock.tier, pool, mask)
                    queue.write(queue_entry(row, instance.trajectory[index - 1].response, lower))
            for line in probes_of(instance, protocol, ledger):
                opened[PROBES].write(line)
                probed[line["verdict"]] += 1
        count_held_back(ledger, summary)
        files = {name: file.finish() for name, file in opened.items()}
    digests = {name: file.sha256 for name, file in files.items()}
    totals = ledger.call_totals()
    digests[SPEND] = write_document(run.path / SPEND, spend_of(run, totals))
    # The manifest last: where it stands, the files it names are whole.
    digests[MANIFEST] = write_document(run.path / MANIFEST, manifest_of(run, summary, files, totals, probed))
    ledger.artifacts.keep(digests)
    return summary
