"""A server process as a context: ``agspec serve``, or vLLM alone, on a port of its own."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from agspec import embedded
from agspec.errors import AgspecError
from agspec.serve.command import EMBEDDED_ENVIRONMENT, EMBEDDED_FLAGS, command
from agspec.serve.config import ServeConfig
from agspec.settings import Settings

START_S = 400
PAGE = os.sysconf("SC_PAGE_SIZE")


class Server:
    """Runs ``line`` with ``--host`` and ``--port`` of its own; the file ``log`` gets what it says."""

    def __init__(self, line: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._line = [*line, "--host", "127.0.0.1", "--port", str(port)]
        self._environment = {**os.environ, "HF_HUB_OFFLINE": "1", **environment}
        self.log = log
        self.client = httpx.Client(base_url=self.url, timeout=600)

    @classmethod
    def with_agspec(
        cls, log: Path, *, settings: Settings, config: ServeConfig, flags: Sequence[str] = (),
        module: str | None = None, **environment: str,
    ) -> Self:  # fmt: skip
        """``agspec serve embedded``, with more of an environment; ``module``: run in the place of vLLM's command."""
        made = command("embedded", flags, settings=settings, config=config, environment=os.environ)
        line = made.arguments
        if module is not None:
            line = (sys.executable, "-m", module, *line[line.index("serve") :])
        return cls(line, {**made.environment, **environment}, log)

    @classmethod
    def without(cls, log: Path, flags: Sequence[str] = ()) -> Self:
        """vLLM alone with the embedded model, no drafts; ``flags`` stand before agspec's defaults."""
        added = [
            part
            for name, value in EMBEDDED_FLAGS.items()
            if name not in flags
            for part in ([name] if value is None else [name, value])
        ]
        program = (sys.executable, "-m", "agspec.engine.vllm_cpu", "serve", embedded.resolve("embedded"))
        return cls([*program, *flags, *added], EMBEDDED_ENVIRONMENT, log)

    def __enter__(self) -> Self:
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(self._line, stdout=out, stderr=subprocess.STDOUT, env=self._environment)
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise AgspecError(f"want a server that starts, got:\n{self.log.read_text()[-3000:]}")
            try:
                if self.client.get("/health").status_code == 200:
                    return self
            except httpx.TransportError:
                time.sleep(0.5)
        self.process.kill()
        raise AgspecError(f"want a server ready within {START_S} s, got:\n{self.log.read_text()[-3000:]}")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.client.close()
        self.process.terminate()
        self.process.wait(60)

    def stats(self) -> dict[str, Any]:
        """The worker's statistics, and this server's links."""
        told = self.client.get("/v1/agspec/stats").raise_for_status().json()
        (worker,) = told["workers"]
        return {**worker, **{key: told[key] for key in ("links", "num_waiting_jobs")}, "api_errors": told["errors"]}

    def settle(self) -> None:
        """Until what requests and answers brought has reached the worker."""
        while self.stats()["num_waiting_jobs"]:
            time.sleep(0.05)

    def sessions(self) -> list[dict[str, Any]]:
        """The sessions there are."""
        found: list[dict[str, Any]] = self.client.get("/v1/agspec/sessions").raise_for_status().json()
        return found

    def num_running(self) -> float:
        """Requests the engine runs."""
        found = re.search(r"^vllm:num_requests_running\{.*\} (\S+)$", self.client.get("/metrics").text, re.MULTILINE)
        if found is None:
            raise AgspecError("want vllm:num_requests_running in /metrics, found none")
        return float(found[1])

    def runs(self, number: int, *, within_s: float) -> bool:
        """Whether the engine comes to run so many requests in time; what it counts lags a moment behind its answers."""
        until = time.monotonic() + within_s
        while self.num_running() != number:
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
        return True

    def resident_bytes(self) -> int:
        """Resident memory of the server and all its children."""
        children: dict[int, list[int]] = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(folder.name))
        total, waiting = 0, [self.process.pid]
        while waiting:
            process = waiting.pop()
            waiting += children.get(process, [])
            try:
                total += PAGE * int(Path(f"/proc/{process}/statm").read_text().split()[1])
            except OSError:
                continue
        return total
