"""Prometheus metrics beside vLLM's own, made at each scrape from the workers' last statistics.

Names and help are METRICS; the hub asks for new statistics every few seconds. With several API server processes vLLM
collects metrics through files, and these are not among them: see /v1/agspec/stats there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from agspec.serve.hub import Hub

COUNTS = {
    "num_drafts": ("agspec_drafts", "Drafts verified."),
    "num_draft_tokens": ("agspec_draft_tokens", "Drafted tokens."),
    "num_accepted_tokens": ("agspec_accepted_tokens", "Drafted tokens that were accepted."),
}
GAUGES = {
    "num_requests": ("agspec_requests_in_flight", "Requests the drafter knows."),
    "num_sessions": ("agspec_sessions", "Sessions that have a store."),
    "num_waiting_tokens": ("agspec_waiting_tokens", "Tokens on their way into the stores."),
    "drift": ("agspec_drift", "Accepted tokens over those the odds foretold; far from 1: calibrate again."),
}


class HubMetrics(Collector):
    """Everything a hub knows, by source, role and store."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def collect(self) -> Iterator[Metric]:
        """One look at the statistics of the first worker; ranks of one engine draft alike."""
        stats = self._hub.stats[0] if self._hub.stats else {}
        for label in ("source", "role"):
            yield from _counts(label, stats.get(f"by_{label}", {}))
        for key, (name, text) in GAUGES.items():
            if stats.get(key) is not None:
                yield GaugeMetricFamily(name, text, value=stats[key])
        stores = stats.get("stores", {})
        size = GaugeMetricFamily("agspec_store_bytes", "Bytes of all stores of a kind.", labels=["store"])
        evicted = CounterMetricFamily("agspec_evicted_tokens", "Tokens evicted from a kind of store.", labels=["store"])
        for store, row in stores.items():
            size.add_metric([store], row["memory_bytes"])
            evicted.add_metric([store], row["num_evicted_tokens"])
        yield size
        yield evicted
        links = CounterMetricFamily("agspec_links", "Requests by how their session was told.", labels=["how"])
        for how, number in self._hub.links.items():
            links.add_metric([how], number)
        yield links
        errors = CounterMetricFamily("agspec_errors", "Errors that cost a draft or a link.", labels=["where"])
        for where, number in {**self._hub.errors, **stats.get("errors", {})}.items():
            errors.add_metric([where], number)
        yield errors
        yield _propose(stats.get("propose", {}))


def _counts(label: str, table: dict[str, dict[str, int]]) -> Iterator[Metric]:
    for key, (name, text) in COUNTS.items():
        family = CounterMetricFamily(f"{name}_by_{label}", text, labels=[label])
        for value, row in table.items():
            family.add_metric([value], row[key])
        yield family


def _propose(spent: dict[str, Any]) -> Metric:
    family = CounterMetricFamily("agspec_propose_seconds", "Time spent drafting, all rows of a step in one.")
    family.add_metric([], spent.get("seconds", 0.0))
    return family
