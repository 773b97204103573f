"""Mixed into vLLM's worker (``worker_extension_cls``): the rpc side of agspec. Names start with ``agspec_``."""

from __future__ import annotations

from typing import Any

import numpy as np

from agspec.tokens import as_tokens


class Extension:
    """Methods for ``llm.collective_rpc`` and ``engine_client.collective_rpc``; all return plain data."""

    model_runner: Any

    def agspec_attach(self) -> bool:
        """Let the proposer know its rows' requests; idempotent. False: the engine drafts with something else."""
        drafter: Any = getattr(self.model_runner, "drafter", None)
        if not hasattr(drafter, "attach"):
            return False
        drafter.attach(self.model_runner)
        return True

    def agspec_open_file(self, tenant: str, key: list[Any], forms: list[list[int]] | list[bytes]) -> None:
        """A file the agent opened, in its emission forms as token ids; a key seen before is skipped.

        ``forms``: lists of ids, or for speed the bytes of int32 arrays.
        """
        tokens = [np.frombuffer(f, np.int32).copy() if isinstance(f, bytes) else as_tokens(f) for f in forms]
        self.model_runner.drafter.drafter.open_file(tenant, tuple(key), tokens)

    def agspec_expect(self, key: str, output: bytes) -> None:
        """What the client expects the request of that name to put out; the bytes of an int32 array of token ids."""
        self.model_runner.drafter.expect(key, np.frombuffer(output, np.int32))

    def agspec_prediction(self, key: str) -> list[int] | None:
        """Of the expected output of the request of that name, tokens drafted and accepted; None: not expected."""
        fate = self.model_runner.drafter.prediction(key)
        return None if fate is None else list(fate)

    def agspec_ended(self, key: str, complete: bool) -> None:
        """The response to the request of that name has ended; ``complete``: the client took all of it."""
        self.model_runner.drafter.ended(key, complete)

    def agspec_remember(self, tenant: str, session: str, tokens: list[int]) -> None:
        """Text of a session that its requests do not carry, such as what was cut from a long prompt."""
        self.model_runner.drafter.drafter.remember(session, as_tokens(tokens), tenant=tenant)

    def agspec_close_session(self, session: str, tenant: str = "") -> None:
        """A session is over: its store goes."""
        self.model_runner.drafter.drafter.close_session(session, tenant=tenant)

    def agspec_settle(self) -> None:
        """The engine is idle: requests the worker has not yet heard the end of have ended."""
        self.model_runner.drafter.settle()

    def agspec_reset(self) -> None:
        """Empty all stores."""
        self.model_runner.drafter.reset()

    def agspec_switch(self, method: str) -> None:
        """Draft with another method from now on (``agspec bench``'s proposer only), all of them cold."""
        self.model_runner.drafter.switch(method)

    def agspec_draft_wrong(self, length: int) -> None:
        """Draft ``length`` wrong tokens for every row from now on (``agspec profile``'s proposer only)."""
        self.model_runner.drafter.length = length

    def agspec_stats(self) -> dict[str, Any]:
        """Counts since the last reset, errors by kind, and the drafts if they are logged.

        ``drift``, also by role: accepted tokens over foretold ones. 1 means the odds hold; None: too few to tell.
        """
        proposer = self.model_runner.drafter
        counts = proposer.drafter.counts
        return {
            "num_drafts": counts.num_drafts,
            "num_draft_tokens": counts.num_draft_tokens,
            "num_accepted_tokens": counts.num_accepted_tokens,
            "num_expected_tokens": counts.num_expected_tokens,
            "drift": counts.drift(),
            "drift_by_role": {role: counts.drift(role) for role in counts.by_role},
            "by_source": {k: dict(v) for k, v in counts.by_source.items()},
            "by_role": {k: dict(v) for k, v in counts.by_role.items()},
            "accepted_at": counts.positions(counts.accepted_at),
            "drafted_at": counts.positions(counts.drafted_at),
            "num_lookups": dict(counts.num_lookups),
            "num_hits": dict(counts.num_hits),
            "errors": dict(proposer.errors),
            **proposer.state(),
            "drafts": proposer.drafts,
        }
