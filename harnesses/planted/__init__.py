"""The planted workload: every step's cheapest tier is known, so what the search finds can be checked exactly.
`source` says which tiers are planted; `models` are the pseudo-models, an answer each; `episode` acts on the answers.
`setup` makes run configs for them."""

from stepdown.harnesses.planted.harness import Planted

__all__ = ["Planted"]
