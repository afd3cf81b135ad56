"""The durable record of a run: one SQLite file, one transaction per trial, every message stored once.

A ledger is made of parts that share the file: `meta` is what the run is, `trajectories` how steps are kept, `written`
which artifacts say all of it, `file` what is recorded and read back, `entries` a trial as it is written. `labelling`
says which part of it work on an instance needs. `browsing` and `finding` read a bounded part,
for somebody who looks at the run. `schema` has tables and records, `database` opens the file. Nothing in it depends on
the clock.
"""

from stepdown.builder.run.ledger.browsing import CallsOfModel
from stepdown.builder.run.ledger.entries import TrialEntry, trial_entry
from stepdown.builder.run.ledger.file import Ledger
from stepdown.builder.run.ledger.labelling import LabellingLedger
from stepdown.builder.run.ledger.meta import JudgeVersion, Origin, RunMeta, RunVersions, WorkloadVersion
from stepdown.builder.run.ledger.schema import (
    BESIDE_LABELS,
    KEPT,
    BookedCall,
    CallTotal,
    InstanceRecord,
    InstanceState,
    Purpose,
    TrialRecord,
    seed_model_of,
)

__all__ = [
    "BESIDE_LABELS",
    "KEPT",
    "BookedCall",
    "CallTotal",
    "CallsOfModel",
    "InstanceRecord",
    "InstanceState",
    "JudgeVersion",
    "LabellingLedger",
    "Ledger",
    "Origin",
    "Purpose",
    "RunMeta",
    "RunVersions",
    "TrialEntry",
    "TrialRecord",
    "WorkloadVersion",
    "seed_model_of",
    "trial_entry",
]
