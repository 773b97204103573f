"""What completion costs a team in a month: by an API, on shared GPUs, on laptops."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Use:
    """How a person completes. ``requests_a_minute``: while typing, after debouncing; tokens are of one request."""

    requests_a_minute: float
    prompt_tokens: float
    fresh_tokens: float
    completion_tokens: float
    hours_a_day: float = 2.0
    days_a_month: int = 21

    @property
    def requests_a_month(self) -> float:
        """Of one person."""
        return self.requests_a_minute * 60 * self.hours_a_day * self.days_a_month


@dataclass(frozen=True)
class Prices:
    """Money in one currency. ``*_million``: of a million tokens; ``cached_share``: of the input price that a cached
    token costs; ``gpu_hour``; ``kwh``."""

    input_million: float = 0.30
    output_million: float = 0.90
    cached_share: float = 0.1
    gpu_hour: float = 1.2
    kwh: float = 0.30


@dataclass(frozen=True)
class Machine:
    """``prefill``, ``decode``: tokens a second, of all requests together; ``watts``: while it works."""

    prefill: float
    decode: float
    watts: float = 0.0

    def seconds(self, use: Use) -> float:
        """Of the machine, for one request."""
        return use.fresh_tokens / self.prefill + use.completion_tokens / self.decode


@dataclass(frozen=True)
class Row:
    """One way of having it, in a month."""

    name: str
    money: float
    told: str


def sheet(
    team: int, use: Use, prices: Prices, gpu: Machine, laptop: Machine, *, peak: float = 3.0, load: float = 0.6,
    open_hours: float = 730.0,
) -> list[Row]:  # fmt: skip
    """Rows for API, shared GPUs and laptops. ``peak``: requests at the busiest over the mean of working hours;
    ``load``: share of a GPU that may be in use then; ``open_hours``: a month that the GPUs are paid for."""
    requests = team * use.requests_a_month
    cached = max(0.0, use.prompt_tokens - use.fresh_tokens)
    paid = use.fresh_tokens + prices.cached_share * cached
    api = requests * (paid * prices.input_million + use.completion_tokens * prices.output_million) / 1e6
    busy = team * use.requests_a_minute / 60 * gpu.seconds(use) * peak * use.hours_a_day / 8
    number = max(1, math.ceil(busy / load))
    hours = use.requests_a_month * laptop.seconds(use) / 3600
    return [
        Row("API", api, f"{requests:,.0f} requests, {requests * paid / 1e6:,.0f}M tokens in as billed,"
            f" {requests * use.completion_tokens / 1e6:,.0f}M out"),
        Row("shared GPU", number * open_hours * prices.gpu_hour,
            f"{number} of them, {busy / number:.0%} busy at the peak"),
        Row("laptops", team * hours * laptop.watts / 1000 * prices.kwh, f"{hours:.1f} h of work each, current only"),
    ]  # fmt: skip
