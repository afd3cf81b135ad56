"""What a router counts, in Prometheus' form."""

from __future__ import annotations

from stepdown.builder.records import Usage


class Figures:
    """Counters of one router. They belong to no global registry, so that a process may have several."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self._registry = CollectorRegistry()

        def counter(name: str, told: str, *labels: str) -> Counter:
            return Counter(f"stepdown_router_{name}", told, labels, registry=self._registry)

        self._calls = counter("calls", "Calls that were answered", "model", "status")
        self._choices = counter("choices", "Choices of the policy, and the model that was asked", "tier", "model")
        self._fallbacks = counter("fallbacks", "Times a model could not be reached, and another was asked", "model")
        self._cut = counter("cut", "Answers that a client left before their end", "model")
        self._tokens = counter("tokens", "Tokens by kind: prompt, cache_read, cache_write, completion", "model", "kind")
        self._usd = counter("usd", "List price of calls", "model")
        self._choosing = Histogram(
            "stepdown_router_choosing_seconds",
            "What a choice took",
            registry=self._registry,
            buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3),
        )
        self._seconds = Histogram(
            "stepdown_router_seconds",
            "What a call took, to the end of its answer",
            ("model",),
            registry=self._registry,
            buckets=(0.1, 0.3, 1, 3, 10, 30, 100, 300),
        )

    def chose(self, tier: str, model: str, seconds: float) -> None:
        self._choices.labels(tier, model).inc()
        self._choosing.observe(seconds)

    def fell_back(self, model: str) -> None:
        self._fallbacks.labels(model).inc()

    def ended(self, model: str, status: int, usage: Usage, usd: float, seconds: float, whole: bool) -> None:
        self._calls.labels(model, str(status)).inc()
        for kind in ("prompt", "cache_read", "cache_write", "completion"):
            self._tokens.labels(model, kind).inc(getattr(usage, kind))
        self._usd.labels(model).inc(usd)
        self._seconds.labels(model).observe(seconds)
        if not whole:
            self._cut.labels(model).inc()

    def text(self) -> tuple[bytes, str]:
        """All counters, and the media type of their form."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(self._registry), CONTENT_TYPE_LATEST
