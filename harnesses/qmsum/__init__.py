"""The QMSum workload: a query over the transcript of a meeting, in QMSum's format. `meetings` reads it and finds the
turns that a query rests on; `harness` makes prefix and case of a query, and says which transcripts are too long."""

from stepdown.harnesses.qmsum.harness import QMSum

__all__ = ["QMSum"]
