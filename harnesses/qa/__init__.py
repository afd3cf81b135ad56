"""Question answering over a task file of one's own, a question a line. `tasks` reads the file; `grading` says by which
rules an answer is graded, `texts` and `numbers` what they compare; `harness` joins them."""

from stepdown.harnesses.qa.harness import QA

__all__ = ["QA"]
