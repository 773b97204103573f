"""vLLM's calling convention for the drafter: ``speculative_config={"method": "custom_class", ...}``.

vLLM 0.32 dies on an exception, on a draft longer than it asked for, on an id outside the vocabulary and on an array in
the place of a list, so everything that leaves here is checked, and whatever goes wrong inside costs one draft.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agspec.build import build_drafter
from agspec.draft.counts import Draft
from agspec.draft.drafter import Drafter
from agspec.draft.kernels import MAX_CONTEXT
from agspec.draft.lookup import BYTES_PER_TOKEN
from agspec.draft.request import Ended, Request, Row
from agspec.engine import patches
from agspec.engine.config import REQUEST, ROLE, SECRET, SESSION, TENANT, from_environment, log_with_vllm
from agspec.engine.parked import Parked
from agspec.engine.state import State
from agspec.errors import AgspecError
from agspec.latest import Latest
from agspec.tokens import as_tokens, load_tokenizer

if TYPE_CHECKING:
    from vllm.config import VllmConfig

log = logging.getLogger("agspec")

EXPECTED = 64
"""Requests whose expected output is kept."""


class Proposer:
    """Drafts for every row of a step from the stores of its session and tenant.

    Use ``speculative_config={"method": "custom_class", "model": "agspec.engine.proposer.Proposer",
    "num_speculative_tokens": 48}`` with ``worker_extension_cls="agspec.engine.extension.Extension"``, and call the
    extension's ``agspec_attach`` once by rpc: without it rows have no identity and nothing is drafted.
    """

    def __init__(self, vllm_config: VllmConfig) -> None:
        log_with_vllm()
        self.settings = from_environment()
        patches.mend_cpu_sampling()
        model = vllm_config.model_config
        assert vllm_config.speculative_config is not None
        self.num_speculative_tokens = int(vllm_config.speculative_config.num_speculative_tokens)
        self.max_model_len = int(model.max_model_len)
        self.tokenizer = load_tokenizer(model.tokenizer)
        self.vocab_size = min(self.tokenizer.vocab_size, int(model.get_vocab_size()))
        self.errors: Counter[str] = Counter()
        self.drafts: list[tuple[str, list[int]]] = []
        self.runner: Any = None
        self.num_steps = 0
        self.propose_s = 0.0
        self._warned = False
        self.kept: State | None = None
        self._secret = os.environ.get(SECRET, "")
        self.reset()
        _warm_up(self.settings, self.tokenizer)
        self.kept = self._restored(vllm_config)

    def load_model(self, *args: object, **kwargs: object) -> None:
        """vLLM calls it at start-up; there is no model to load."""

    def reset(self) -> None:
        """Forget everything: new, empty stores."""
        self.drafter: Drafter = build_drafter(self.settings, self.tokenizer)
        self.drafts = []
        self.parked = Parked()
        self.expected: Latest[str, npt.NDArray[np.int32]] = Latest(EXPECTED)
        self._foreseen: Latest[str, tuple[int, int]] = Latest(EXPECTED)
        self._named: dict[str, str] = {}

    def attach(self, runner: Any) -> None:
        """Hand over the model runner, which knows the rows' requests; may be called again."""
        if self.runner is None:
            removed = getattr(runner, "_on_request_state_removed", None)
            if removed is not None:

                def on_removed(req_id: str, req_state: object) -> None:
                    self._guard("finish", self._finish, req_id, req_state)
                    removed(req_id, req_state)

                runner._on_request_state_removed = on_removed
            patches.draft_to_the_limit(runner)
        self.runner = runner

    def propose(
        self,
        sampled_token_ids: list[list[int]],
        num_tokens_no_spec: npt.NDArray[Any],
        token_ids_cpu: npt.NDArray[Any],
        slot_mappings: object = None,
    ) -> list[list[int]]:
        """One draft a row, ``[]`` for a partial prefill and where nothing is worth verifying.

        ``num_tokens_no_spec`` [rows], ``token_ids_cpu`` [rows, max_model_len]: live buffers, read and not kept.
        """
        rows: list[Row | None] = []
        for i, sampled in enumerate(sampled_token_ids):
            rows.append(self._guard("row", self._row, i, sampled, num_tokens_no_spec, token_ids_cpu))
        known = [row for row in rows if row is not None]
        if not known:
            return [[] for _ in rows]
        started = time.perf_counter()
        self._guard("intake", self.drafter.intake.take_in)
        self._guard("observe", self.drafter.observe_step, known)
        for row in known:
            self._guard("observe", self.drafter.observe, row)
        asked = [None if row is None else self._guard("draft", self.drafter.ask, row, len(known)) for row in rows]
        drafts = self._guard("draft", self._drafts, asked, len(known)) or [None] * len(rows)
        self._guard("intake", self.drafter.intake.begin)
        self.num_steps += 1
        self.propose_s += time.perf_counter() - started
        return [self._guard("draft", self._checked, row, draft) or [] for row, draft in zip(rows, drafts, strict=True)]

    def ended(self, key: str, complete: bool) -> None:
        """The API side's word on the request of that name: whether its output was taken to its end."""
        self.expected.pop(key, None)
        for output in self.parked.told(key, complete):
            self._guard("finish", self._share, output)

    def state(self) -> dict[str, Any]:
        """What is held and waits: requests, sessions, bytes of the stores; and the time drafting took."""
        self.drafter.intake.wait()
        homes = self.drafter.homes
        return {
            "num_requests": len(self.drafter.requests),
            "num_sessions": len(homes.sessions),
            "num_waiting_tokens": self.drafter.intake.num_waiting_tokens,
            "num_refused_tokens": self.drafter.intake.num_refused_tokens,
            "num_parked": len(self.parked),
            "stores": homes.sizes(),
            "propose": {"num_steps": self.num_steps, "seconds": self.propose_s},
        }

    def expect(self, key: str, output: npt.NDArray[np.int32]) -> None:
        """What the client expects the request of that name to put out; it may come before the request or after."""
        output = self.expected[key] = output[: self.max_model_len]
        for request, name in self._named.items():
            if name == key:
                self._guard("expect", self.drafter.expect, request, output)

    def prediction(self, key: str) -> tuple[int, int] | None:
        """What became of the expected output of the request of that name: tokens drafted, accepted; None: unknown."""
        for request, name in self._named.items():
            if name == key:
                return self.drafter.num_foreseen(request)
        return self._foreseen.get(key)

    def settle(self) -> None:
        """The engine is idle: whatever is still open has ended."""
        for request in self.drafter.requests:
            self._guard("finish", self.drafter.finish, request)

    def _row(self, i: int, sampled: list[int], num_tokens: npt.NDArray[Any], token_ids: npt.NDArray[Any]) -> Row | None:
        if not sampled:
            return None
        if self.runner is None:
            if not self._warned:
                self._warned = True
                log.warning(
                    "agspec drafts nothing: the rpc agspec_attach was not called (worker_extension_cls missing?)"
                )
            return None
        batch = self.runner.input_batch
        request = batch.req_ids[i]
        n = int(num_tokens[i])
        if request not in self.drafter:
            extra = _extra_args(self.runner.requests.get(request))
            if not str(extra.get(REQUEST, "")).startswith(self._secret):
                return None
            self._start(request, np.array(token_ids[i, : batch.num_prompt_tokens[i]], np.int32), extra)
        start = max(0, n - max(MAX_CONTEXT, len(sampled)))
        context = np.array(token_ids[i, start:n], np.int32)
        room = min(self.num_speculative_tokens, self.max_model_len - n - 1)
        return Row(request, context, min(len(sampled), int(context.size)), max(0, room))

    def _start(self, request: str, prompt: npt.NDArray[np.int32], extra: dict[str, Any]) -> None:
        session = extra.get(SESSION)
        self.drafter.start(
            request,
            as_tokens(prompt),
            session=None if session is None else str(session),
            tenant=str(extra.get(TENANT, "")),
            role=str(extra.get(ROLE, "other")),
        )
        key = extra.get(REQUEST)
        if key is not None:
            self._named[request] = str(key)
            if str(key) in self.expected:
                self.drafter.expect(request, self.expected[str(key)])

    def _finish(self, request: str, state: object) -> None:
        self._named.pop(request, None)
        key = _extra_args(state).get(REQUEST)
        ended = self.drafter.finish(request, share=False)
        if ended is None:
            return
        if key is None:
            self._share(ended)
            return
        if str(key) in self.expected:
            self._foreseen[str(key)] = ended.num_foreseen
        for output in self.parked.park(str(key), ended):
            self._share(output)

    def _share(self, ended: Ended) -> None:
        self.drafter.share(ended)
        if self.kept is not None:
            self.kept.add(ended.tenant.name, ended.tail, ended.output)

    def _restored(self, vllm_config: VllmConfig) -> State | None:
        """The state of the last run, loaded; None where none is kept, or it cannot be: told in the log."""
        settings, parallel = self.settings, vllm_config.parallel_config
        if settings.state is None:
            return None
        several = parallel.data_parallel_size > 1
        folder = settings.state / f"dp{parallel.data_parallel_rank}" if several else settings.state
        most = int((settings.shared_mib << 20) / BYTES_PER_TOKEN)
        writes = parallel.rank % parallel.world_size == 0
        try:
            state = State(folder, tokenizer=self.tokenizer.fingerprint, most_tokens=most, writes=writes)
            for tenant, documents in state.load(settings.max_tenants):
                self.drafter.restore(tenant, documents)
        except AgspecError as error:
            log.error("agspec: no state is kept: %s", error)
            return None
        return state

    def _drafts(self, asked: list[Request | None], num_rows: int) -> list[Draft | None]:
        drafts = self.drafter.commit(self.drafter.answer(asked), num_rows)
        if len(drafts) != len(asked):
            raise ValueError(f"want a draft or None for each of {len(asked)} rows, got {len(drafts)}")
        return drafts

    def _checked(self, row: Row | None, draft: Draft | None) -> list[int]:
        if row is None or draft is None:
            return []
        tokens: list[int] = draft.tokens[: row.room].tolist()
        if not all(0 <= token < self.vocab_size for token in tokens):
            raise ValueError(f"draft holds an id outside the vocabulary of {self.vocab_size}")
        if self.settings.log_drafts:
            self.drafts.append((row.request, tokens))
        return tokens

    def _guard(self, what: str, function: Any, *args: Any) -> Any:
        try:
            return function(*args)
        except Exception as error:
            if self.settings.strict:
                raise
            if not self.errors[what]:
                log.exception("agspec: %s failed (%s); drafting goes on without it", what, error)
            self.errors[what] += 1
            return None


def _extra_args(state: object) -> dict[str, Any]:
    return getattr(getattr(state, "sampling_params", None), "extra_args", None) or {}


def _warm_up(settings: Any, tokenizer: Any) -> None:
    """Compile every kernel on real input, so that no step of a request does."""
    drafter = build_drafter(settings, tokenizer)
    text = as_tokens([5, 6, 7, 8, 9, 10] * 40)
    drafter.open_file("", ("", 0), [text])
    drafter.start("a", text, session="s")
    drafter.propose([Row("a", text[:7], 1, 8)])
    drafter.propose([Row("a", text[:9], 2, 8)])
    drafter.finish("a")
