"""The BFCL v4 workload: single-turn function calls graded by the official AST checker, and multi-turn conversations on
the official simulated APIs graded by the official state and response checkers; data and checkers come from the wheel.
`harness` joins the parts; `single_turn` and `multi_turn` are the episodes; `simulation` runs a model's calls."""

from stepdown.harnesses.bfcl.harness import BFCL

__all__ = ["BFCL"]
