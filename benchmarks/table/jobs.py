"""Replays as jobs: done by a pool of processes, each finished one kept on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from agspec.replay.trace import write_whole
from agspec.tokens import Tokenizer, load_tokenizer
from benchmarks.table import run
from benchmarks.table.counts import BySession
from benchmarks.table.families import Change, Family, fingerprint, load_family
from benchmarks.table.sweep import TEXTS, sweep
from benchmarks.table.tune import GRIDS, text_of

ROOT = Path(__file__).resolve().parents[2]
READING = (
    "agspec/replay/importers", "agspec/replay/plan.py", "agspec/replay/render.py", "agspec/draft/emission.py",
    "agspec/scaffold", "agspec/messages.py", "agspec/tokens.py", "scaffolds",
    "benchmarks/table/families.py", "benchmarks/table/jobs.py", "benchmarks/table/counts.py",
)  # fmt: skip
"""Files that decide what is replayed."""
SWEEPING = (
    "agspec/replay/methods.py", "agspec/draft/lookup.py", "agspec/draft/automaton.py", "agspec/draft/kernels.py",
    "agspec/draft/reading.py",
    "benchmarks/table/texts.py", "benchmarks/table/rest.py", "benchmarks/table/sweep.py", "benchmarks/table/tune.py",
)  # fmt: skip
"""Files that decide what a baseline drafts: a change of agspec's own drafter costs no new sweep."""
DRAFTING = ("agspec", "benchmarks/table/run.py")
"""Files that decide what agspec drafts."""


@dataclass(frozen=True)
class Sweep:
    """Every setting that drafts from ``text``, over a family: half ``first``, then the other."""

    family: str
    method: str
    text: str
    first: int

    def run(self, family: Family, place: Place) -> list[BySession]:
        """Counts of each setting."""
        grid = [values for values in GRIDS[self.method] if text_of(self.method, values) == self.text]
        return sweep(TEXTS[self.text](), grid, [*family.half(self.first), *family.half(1 - self.first)])


@dataclass(frozen=True)
class Replay:
    """agspec over half a family; ``values``: settings that differ from the defaults."""

    family: str
    half: int
    method: str
    values: tuple[tuple[str, Any], ...]
    change: Change | None = None
    warm: bool = False
    trained: bool = True

    def run(self, family: Family, place: Place) -> list[BySession]:
        """Its counts, as the one item of a list."""
        counts = run.measure(
            self.method,
            dict(self.values),
            training=family.half(1 - self.half),
            calls=family.half(self.half),
            caps=place.caps(self) if self.trained else None,
            warm=self.warm,
            tokenizer=_tokenizer(place.tokenizer),
        )
        return [counts]


Job = Sweep | Replay


@dataclass(frozen=True)
class Place:
    """Where traces, tokenizer and finished replays lie."""

    traces: Path
    tokenizer: Path
    kept: Path

    def caps(self, job: Replay) -> Path:
        """What was learned of the other half, at the job's cost ratio, every part and store in use."""
        told = [job.family, job.half, job.method, dict(job.values)["cost_ratio"], job.change]
        return self.kept / f"caps-{self._name(told, job.family, (*READING, *DRAFTING))}"

    def file(self, job: Job) -> Path:
        """The job's file: named by the job, the sessions and the source that decides its outcome."""
        sources = (*READING, *(SWEEPING if isinstance(job, Sweep) else DRAFTING))
        return self.kept / self._name([type(job).__name__, asdict(job)], job.family, sources)

    def _name(self, told: list[Any], family: str, sources: tuple[str, ...]) -> str:
        told = [
            *told,
            _sessions(family, self.traces),
            _hash(sources),
            _tokenizer(self.tokenizer).fingerprint,
            _arctic(),
        ]
        return f"{blake2b(json.dumps(told).encode(), digest_size=12).hexdigest()}.json"


def finished(job: Job, place: Place) -> list[BySession] | None:
    """What is kept of the job."""
    file = place.file(job)
    if not file.is_file():
        return None
    return [{session: tuple(counts) for session, counts in found.items()} for found in json.loads(file.read_bytes())]


def run_all(jobs: Iterable[Job], place: Place, *, workers: int) -> Iterator[tuple[Job, list[BySession]]]:
    """Each job with its counts, as they are finished; kept ones first. ``workers`` 1 stays in this process."""
    waiting = []
    for job in dict.fromkeys(jobs):
        found = finished(job, place)
        if found is None:
            waiting.append(job)
        else:
            yield job, found
    if workers == 1:
        for job in waiting:
            yield job, do(job, place)
        return
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(do, job, place): job for job in waiting}
        for future in as_completed(futures):
            yield futures[future], future.result()


def do(job: Job, place: Place) -> list[BySession]:
    """Replay and keep."""
    change = job.change if isinstance(job, Replay) else None
    found = job.run(family(job.family, place, change), place)
    write_whole(place.file(job), json.dumps(found).encode())
    return found


@lru_cache(maxsize=4)
def family(name: str, place: Place, change: Change | None = None) -> Family:
    """The family, read and tokenised once."""
    return load_family(name, place.traces, _tokenizer(place.tokenizer), change)


@cache
def _tokenizer(path: Path) -> Tokenizer:
    return load_tokenizer(path)


@cache
def _sessions(name: str, traces: Path) -> str:
    return fingerprint(name, traces)


@cache
def _hash(sources: tuple[str, ...]) -> str:
    digest = blake2b(digest_size=12)
    for source in sources:
        where = ROOT / source
        files = [where] if where.is_file() else [p for s in ("*.py", "*.toml") for p in sorted(where.rglob(s))]
        for file in files:
            digest.update(str(file.relative_to(ROOT)).encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def _arctic() -> str:
    try:
        return metadata.version("arctic-inference")
    except metadata.PackageNotFoundError:
        return "none"
