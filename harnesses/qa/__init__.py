"""Question answering over the user's own task file, one question a line.

`tasks` reads the file. `grading` has the rules by which answers are graded; they compare with `texts` and `numbers`.
`harness` joins the parts.
"""

from stepdown.harnesses.qa.harness import QA

__all__ = ["QA"]
