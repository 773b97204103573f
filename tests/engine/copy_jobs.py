"""What the tests of copy programs run in an engine's own process; plain data in, plain data out."""

from __future__ import annotations

from typing import Any

from agspec.copyedit.compile import compile_edit
from agspec.copyedit.machine import Machine
from agspec.copyedit.program import show
from agspec.copyedit.source import Source
from agspec.copyedit.token_machine import TokenMachine, Vocabulary
from agspec.engine.copies.edits import SCHEDULER, Edit, Edits
from agspec.engine.copies.reference import decode
from agspec.engine.copies.request import CopyRequest
from agspec.engine.launcher import SWITCH, make_llm
from agspec.settings import Settings
from agspec.tokens import load_tokenizer

SHORT = "".join(f"value_{i} = compute({i})\n" for i in range(1, 21))
ODD = 'def area(w, h):\n    """Area."""\n    return w * h\n\n\nprint(area(2, 3))'
FILES = (SHORT, ODD)
LONG = "".join(f"def function_{i}(argument):\n    return argument * {i} + {i * i}\n\n\n" for i in range(24))
CHANGED = LONG.replace("argument * 15 +", "argument * 16 +")
BUDGET = 256
"""Tokens of an engine step: the long file's copies do not fit one."""
LEFT_AT = 1100
"""Prompt tokens, splices among them, of an edit of the long file that is being spliced."""
BLOCKS = 18
"""Of the KV cache, 128 tokens each: less than two edits of the long file need."""


def prompt_of(tokenizer: Any, source: str, hello: str = "") -> list[int]:
    numbered = "".join(f"{i}|{line}" for i, line in enumerate(source.splitlines(keepends=True), 1))
    asked = 'Write the file again with a comment. Copy lines with <copy lines="i-j"/>, write with <gen>text</gen>.'
    tokens: list[int] = tokenizer.encode(
        f"<|im_start|>user\n{hello}{asked}\n{numbered}<|im_end|>\n<|im_start|>assistant\n"
    ).tolist()
    return tokens


def told(edit: Edit, vocabulary: Vocabulary) -> dict[str, Any]:
    return {
        "program": vocabulary.bytes_of(edit.tokens),
        "tokens": edit.tokens, "steps": edit.num_steps, "splices": edit.num_splices, "done": edit.done,
        "stopped": edit.stopped,
    }  # fmt: skip


def tape_of(before: str, after: str, vocabulary: Vocabulary) -> tuple[int, ...]:
    sources = [Source(before.encode())]
    machine = TokenMachine(Machine(sources, spans=False), vocabulary)
    return tuple(machine.tokens_of(show(compile_edit(sources, after.encode()))))


def copies() -> dict[str, Any]:
    """Everything, on one engine in float32."""
    from vllm import SamplingParams, TokensPrompt

    tokenizer = load_tokenizer("embedded")
    vocabulary = Vocabulary(tokenizer)
    llm = make_llm(
        "embedded", settings=Settings(), proposer=SWITCH, dtype="float32", max_model_len=2048, max_num_seqs=4,
        scheduler_cls=SCHEDULER, async_scheduling=False, max_num_batched_tokens=BUDGET, num_gpu_blocks_override=BLOCKS,
        enable_chunked_prefill=True,
    )  # fmt: skip
    scheduler = llm.llm_engine.engine_core.engine_core.scheduler
    runner = llm.llm_engine.model_executor.driver_worker.model_runner
    edits = Edits(llm, vocabulary.end)
    out: dict[str, Any] = {}

    def one(source: str, name: str, **more: Any) -> Edit:
        request = CopyRequest(sources=(source,), max_tokens=more.pop("max_tokens", 70), tape=more.pop("tape", None),
                              max_bytes=more.pop("max_bytes", 1 << 22))  # fmt: skip
        prompt = prompt_of(tokenizer, source, more.pop("hello", ""))
        return edits.start(name, prompt, request, **more)

    def context(name: str) -> list[int]:
        """What the worker has computed for the one request there is."""
        states = [state for request, state in runner.requests.items() if request.startswith(name)]
        return [*states[0].prompt_token_ids, *states[0].output_token_ids] if states else []

    for method in ("none", "agspec"):
        llm.collective_rpc("agspec_switch", args=(method,))
        found = []
        for i, source in enumerate(FILES):
            edit = one(source, f"{method}{i}")
            last: list[int] = []
            while edits.num_live:
                edits.step()
                if edits.num_live:
                    last = context(f"{method}{i}") or last
            found.append({**told(edit, vocabulary), "context": last})
            llm.llm_engine.step()
        out[method] = found
    llm.collective_rpc("agspec_switch", args=("none",))
    out["reference"] = []
    for source in FILES:
        request = CopyRequest(sources=(source,), max_tokens=70)
        tokens, whole = decode(llm, prompt_of(tokenizer, source), request, vocabulary)
        out["reference"].append({"tokens": tokens, "context": whole})

    plain = SamplingParams(temperature=0.0, max_tokens=40, ignore_eos=True)
    alone = llm.generate(TokensPrompt(prompt_token_ids=prompt_of(tokenizer, ODD)), plain, use_tqdm=False)
    beside = []
    batch = [one(source, f"batch{i}") for i, source in enumerate(FILES)]
    llm.llm_engine.add_request("plain", TokensPrompt(prompt_token_ids=prompt_of(tokenizer, ODD)), plain)
    while edits.num_live or len(beside) < 1:
        beside += [list(o.outputs[0].token_ids) for o in edits.step() if o.finished]
    out["batch"] = [told(edit, vocabulary) for edit in batch]
    out["ordinary"] = {"alone": list(alone[0].outputs[0].token_ids), "beside": beside[0]}

    sampled = [one(FILES[seed % 2], f"sampled{seed}", temperature=1.3, seed=seed, max_tokens=40 + 5 * seed)
               for seed in range(8)]  # fmt: skip
    edits.run()
    out["sampled"] = [{**told(edit, vocabulary), "source": FILES[i % 2]} for i, edit in enumerate(sampled)]

    tape = tape_of(LONG, CHANGED, vocabulary)
    for method in ("none", "agspec"):
        llm.collective_rpc("agspec_switch", args=(method,))
        edit = one(LONG, f"long {method}", tape=tape, max_tokens=len(tape))
        edits.run()
        out[f"long {method}"] = told(edit, vocabulary)
    llm.collective_rpc("agspec_switch", args=("none",))
    out["tape"] = list(tape)
    preempted = 0
    pair = [one(LONG, f"pair{i}", tape=tape, max_tokens=len(tape), hello=f"Edit {i}: ") for i in range(2)]
    while edits.num_live:
        edits.step()
        preempted = max(preempted, sum(request.num_preemptions for request in scheduler.requests.values()))
    out["pair"] = [told(edit, vocabulary) for edit in pair]
    out["preempted"] = preempted

    one(LONG, "left", tape=tape, max_tokens=len(tape))
    while not (edits.step() or any(r.num_prompt_tokens > LEFT_AT for r in scheduler.requests.values())):
        pass
    edits.abort("left")
    llm.llm_engine.step()
    llm.llm_engine.step()
    out["after abort"] = {"requests": len(scheduler.requests), "running": len(scheduler.running),
                          "unfinished": llm.llm_engine.has_unfinished_requests()}  # fmt: skip

    loop = show(compile_edit([Source(SHORT.encode())], (SHORT * 20).encode()))
    machine = TokenMachine(Machine([Source(SHORT.encode())], spans=False), vocabulary)
    full = one(SHORT, "full", tape=tuple(machine.tokens_of(loop)), max_tokens=900)
    edits.run()
    out["full"] = told(full, vocabulary)
    capped = one(SHORT, "capped", max_bytes=100, max_tokens=400, temperature=1.5, seed=3)
    edits.run()
    out["capped"] = told(capped, vocabulary)
    return out
