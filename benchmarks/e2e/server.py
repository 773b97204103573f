"""``agspec serve embedded`` with scripted answers, as a context."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agspec.serve.process import Server
from agspec.tokens import Tokens, load_tokenizer

ROOT = Path(__file__).resolve().parents[2]
TAPED = "benchmarks.e2e.taped"


class TapedServer(Server):
    """See ``with_agspec``. More tokens than the model knows may be asked for: its own choices would be poor there."""

    def __init__(self, line: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        more = {"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1", "PYTHONPATH": path}
        taped = [sys.executable, "-m", TAPED, *line[line.index("serve") :]]
        super().__init__([*taped, "--middleware", f"{TAPED}.Script"], {**environment, **more}, log)
        self.tokenizer = load_tokenizer("embedded")

    def script(self, answers: Iterable[str | Tokens]) -> None:
        """From now on, what the requests get: texts, or whole tapes."""
        end = self.tokenizer.end_id
        tapes = [
            [*self.tokenizer.encode(answer).tolist(), end] if isinstance(answer, str) else answer.tolist()
            for answer in answers
        ]
        self.client.post("/tapes", json={"tapes": tapes}).raise_for_status()

    def num_decoded(self) -> int:
        """Tokens that the engine sampled or accepted, over all requests."""
        found = re.search(r"^vllm:generation_tokens_total\{.*\} (\S+)$", self.client.get("/metrics").text, re.MULTILINE)
        if found is None:
            raise SystemExit("want vllm:generation_tokens_total in /metrics, found none")
        return int(float(found[1]))

    def taken(self) -> tuple[int, int]:
        """How many answers of the script were taken, and how many are left (negative: more were asked for)."""
        told = self.client.get("/tapes").json()
        return told["taken"], told["left"]
