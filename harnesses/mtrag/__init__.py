"""The mtRAG workload: the last turn of a conversation, answered from retrieved passages.

`tasks` reads generation tasks in the formats of MTRAG and MTRAG-UN, and says which are dropped. `harness` makes the
prefix and the judge's case of a task.
"""

from stepdown.harnesses.mtrag.harness import MTRAG

__all__ = ["MTRAG"]
