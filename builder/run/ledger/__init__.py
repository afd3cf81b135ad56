"""The durable record of a run: one SQLite file, one transaction per trial, every message stored once.

`schema` is what it holds, `database` the SQLite file, `trajectories` how steps are kept in it, `file` what is recorded
and read back. Nothing in it depends on the clock.
"""

from stepdown.builder.run.ledger.file import Ledger
from stepdown.builder.run.ledger.schema import (
    KEPT,
    BookedCall,
    CallTotal,
    InstanceRecord,
    InstanceState,
    Purpose,
    TrialRecord,
)

__all__ = ["KEPT", "BookedCall", "CallTotal", "InstanceRecord", "InstanceState", "Ledger", "Purpose", "TrialRecord"]
