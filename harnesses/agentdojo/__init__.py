"""AgentDojo, with tasks, tools, checks and attacks from its own package: a tool agent whose data may hold instructions.

`upstream` is the package, `source` selects tasks, `episode` is one environment, `execution` runs a model's calls in it,
`settling` takes the clock and chance out of what they leave, `grading` asks the package's own checks. `scripted` has
the pseudo-models.
"""

from stepdown.harnesses.agentdojo.harness import AgentDojo

__all__ = ["AgentDojo"]
