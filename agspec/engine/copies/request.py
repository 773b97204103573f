"""What an edit request tells the engine, in its extra_args under COPY."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agspec.copyedit.source import Source

COPY = "agspec_copy"


class CopyRequest(BaseModel):
    """``sources``: the files' texts. ``max_tokens``: tokens of the program, its end included.

    ``max_bytes``: of the result's copies together; a loop of copies ends there. ``tape``: a program's tokens to force,
    for replays. ``single``: the program is over after one primitive, for the reference way. ``escaped``: what is
    written stands in a JSON string, and copied lines with it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: tuple[str, ...]
    max_tokens: int = Field(ge=1)
    max_bytes: int = Field(default=1 << 22, ge=0)
    spans: bool = False
    single: bool = False
    escaped: bool = False
    tape: tuple[int, ...] | None = None

    @property
    def files(self) -> list[Source]:
        """What may be copied from."""
        return [(Source.escaped if self.escaped else Source)(text.encode()) for text in self.sources]

    def sampling(self, **params: Any) -> Any:
        """vLLM's SamplingParams of a request that decodes this program: greedy, with ``params`` over that.

        ``extra_args`` among them go beside ours. The grammar that is asked for is replaced by ours in the engine.
        """
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        return SamplingParams(**{
            "temperature": 0.0, "max_tokens": self.max_tokens, "detokenize": False, **params,
            "extra_args": {**params.get("extra_args", {}), **self.to_args()},
            "structured_outputs": StructuredOutputsParams(choice=["a"]),
        })  # fmt: skip

    def to_args(self) -> dict[str, Any]:
        """As extra_args hold it."""
        return {COPY: self.model_dump(mode="json", exclude_defaults=True)}

    @classmethod
    def of(cls, extra_args: Mapping[str, Any] | None) -> CopyRequest | None:
        """What a request's extra_args tell; None where it is no edit."""
        told = (extra_args or {}).get(COPY)
        return None if told is None else cls.model_validate(told)
