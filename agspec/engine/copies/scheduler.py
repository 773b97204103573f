"""The splice: where a request closes a copy, the copied tokens follow at once, in one forward.

``scheduler_cls="agspec.engine.copies.scheduler.CopyScheduler"``; vLLM's scheduler interface is not public, so the
version is checked where the grammar is installed (``patches``). A request must be resumable (its client keeps the input
open, see vLLM's StreamingInput): each copy ends a chunk with ``finish_reason="stop"`` and ``finished=False``.
"""

from __future__ import annotations

from typing import Any

from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.request import Request, RequestStatus, StreamingUpdate

from agspec.engine import patches
from agspec.engine.copies.grammar import CopyGrammar

patches.own_grammars()


class CopyScheduler(Scheduler):
    """vLLM's, with splices; requests without a copy grammar pass unchanged."""

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        """See super. Where nothing can go on, the youngest splice gives its KV back, to be computed again later.

        Splices that wait for room in the KV cache hold some of it, and vLLM itself takes it from running requests only.
        """
        output = super().schedule(throttle_prefills)
        if not output.total_num_scheduled_tokens and not self.running:
            held = [request for request in self.kv_holding_waiting if request.status == RequestStatus.WAITING]
            if len(held) > 1:
                youngest = max(held, key=lambda request: request.arrival_time)
                self.kv_holding_waiting.remove_requests([youngest])
                self._free_request_blocks(youngest)
                youngest.num_computed_tokens = 0
                youngest.num_preemptions += 1
                self.waiting.prepend_request(youngest)
        return output

    def _update_request_with_output(
        self, request: Request, new_token_ids: list[int], is_stale: bool = False
    ) -> tuple[list[int], bool]:
        grammar: Any = getattr(request.structured_output_request, "grammar", None)
        found = grammar.first_copy(new_token_ids) if isinstance(grammar, CopyGrammar) else None
        if found is None or request.streaming_queue is None:
            return super()._update_request_with_output(request, new_token_ids, is_stale)
        count, copy = found
        kept, stopped = super()._update_request_with_output(request, new_token_ids[:count], is_stale)
        span = grammar.span(copy)
        grammar.keep_within(self.max_model_len - request.num_tokens - len(span), after=count)
        left = grammar.num_left - count
        if len(kept) < count or left < 1:
            if not stopped:
                request.status = RequestStatus.FINISHED_LENGTH_CAPPED
            return kept, True
        request.num_computed_tokens = min(request.num_computed_tokens, request.num_tokens - 1)
        request.status = RequestStatus.FINISHED_STOPPED
        update = StreamingUpdate(
            mm_features=None,
            prompt_token_ids=[kept[-1], *span],
            max_tokens=left,
            arrival_time=request.arrival_time,
            sampling_params=request.sampling_params,
        )
        request.streaming_queue.appendleft(update)
        return kept, True
