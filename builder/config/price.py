"""What a model costs by list price. It needs no validation library, so that looking at a run loads none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge

from stepdown.builder.records import Usage

Rate = Annotated[float, Ge(0)]


@dataclass(frozen=True)
class Price:
    """A model's list price, in US dollars per million tokens."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "allow_inf_nan": False, "use_attribute_docstrings": True}

    input: Rate = 0.0
    """Prompt tokens that are neither read from nor written to the provider's prompt cache."""
    cache_read: Rate | None = None
    """Prompt tokens read from the provider's prompt cache. Not set: as `input`."""
    cache_write: Rate | None = None
    """Prompt tokens written to the provider's prompt cache. Not set: as `input`."""
    output: Rate = 0.0
    """Tokens of the answer."""

    def cost(self, usage: Usage) -> float:
        """USD for one call; prompt tokens that were neither read from nor written to a prompt cache pay `input`.

        >>> Price(input=5, cache_read=0.5, cache_write=6.25, output=25).cost(Usage(1000, 400, 100, 10))
        0.003575
        >>> Price(input=5, output=25).cost(Usage(1000, 400, 100, 10))
        0.00525
        """
        plain = max(0, usage.prompt - usage.cache_read - usage.cache_write)
        read = usage.cache_read * (self.input if self.cache_read is None else self.cache_read)
        write = usage.cache_write * (self.input if self.cache_write is None else self.cache_write)
        return round((plain * self.input + read + write + usage.completion * self.output) / 1e6, 12)

    def saved_by_cache(self, usage: Usage) -> float:
        """USD that the provider's prompt cache saved: the same tokens all at `input`, less what they cost. Negative
        where more was paid for writing than reading saved.

        >>> Price(input=5, cache_read=0.5, cache_write=6.25, output=25).saved_by_cache(Usage(1000, 400, 100, 10))
        0.001675
        """
        plain = Usage(prompt=max(usage.prompt, usage.cache_read + usage.cache_write), completion=usage.completion)
        return round(self.cost(plain) - self.cost(usage), 12)
