"""The BFCL v4 workload, with data and checkers from the bfcl-eval wheel.

Single-turn function calls are graded by the official AST checker. Multi-turn conversations on the official simulated
APIs are graded by the official state and response checkers. `harness` joins the parts, `single_turn` and `multi_turn`
are the episodes, and `simulation` executes a model's calls.
"""

from stepdown.harnesses.bfcl.harness import BFCL

__all__ = ["BFCL"]
