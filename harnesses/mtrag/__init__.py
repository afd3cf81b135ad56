"""The mtRAG workload: the last turn of a conversation, answered from retrieved passages, in the formats of MTRAG and
MTRAG-UN. `tasks` reads their generation tasks and says which are dropped; `harness` makes prefix and case of one."""

from stepdown.harnesses.mtrag.harness import MTRAG

__all__ = ["MTRAG"]
