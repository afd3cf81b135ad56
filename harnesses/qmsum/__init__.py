"""The QMSum workload: queries over the transcript of a meeting.

`meetings` reads QMSum's format and finds the turns that are relevant to a query. `harness` makes the prefix and the
judge's case of a query, and drops queries whose transcripts are too long.
"""

from stepdown.harnesses.qmsum.harness import QMSum

__all__ = ["QMSum"]
