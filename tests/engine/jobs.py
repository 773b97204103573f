"""What the engine tests run in an engine's own process; plain data in, plain data out."""

from __future__ import annotations

from typing import Any

from agspec.engine.launcher import PROPOSER, SWITCH, make_llm
from agspec.engine.profile import Job
from agspec.engine.verify import PROMPTS
from agspec.settings import Settings

PROFILE = Job(model="embedded", batches=(1, 2), drafted=(0, 4), repeats=2, context=64, dtype="float32")
CEILING = 1024
"""max_model_len of the free-running engines: low, so that a repetitive prompt reaches it mid-draft."""
TEXTS = [f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n" for prompt in PROMPTS]
COUNTING = "<|im_start|>user\nSay one of: red, green, blue.<|im_end|>\n<|im_start|>assistant\nI say the colour"
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "sizes": {"type": "array", "items": {"type": "integer"},
                   "minItems": 8, "maxItems": 8}},
    "required": ["name", "sizes"],
    "additionalProperties": False,
}  # fmt: skip


def _generate(llm: Any, texts: list[str], **params: Any) -> list[Any]:
    from vllm import SamplingParams

    outputs = llm.generate(texts, SamplingParams(**{"temperature": 0.0, **params}), use_tqdm=False)
    return list(outputs)


def _sample(llm: Any, number: int, **way: Any) -> list[list[int]]:
    """``number`` samples of a few tokens at temperature 1, each with its own seed."""
    from vllm import SamplingParams

    params = [SamplingParams(max_tokens=4, temperature=1.0, seed=i, ignore_eos=True, **way) for i in range(number)]
    return _tokens(llm.generate([COUNTING] * number, params, use_tqdm=False))


def _tokens(outputs: list[Any]) -> list[list[int]]:
    return [list(choice.token_ids) for output in outputs for choice in output.outputs]


def _gaps(output: Any) -> list[float]:
    gaps = []
    for position in output.outputs[0].logprobs or []:
        best = sorted((entry.logprob for entry in position.values()), reverse=True)[:2]
        gaps.append(float(best[0] - best[1]))
    return gaps


def free_running(drafted: bool) -> dict[str, Any]:
    """Greedy and sampled generation of every kind the tests compare, with or without agspec, in float32."""
    from vllm.sampling_params import StructuredOutputsParams

    llm = make_llm(
        "embedded", settings=Settings(), proposer=PROPOSER if drafted else None, dtype="float32",
        max_model_len=CEILING, max_num_seqs=4,
    )  # fmt: skip
    out: dict[str, Any] = {}
    logprobs = None if drafted else 2
    singles = [_generate(llm, [text], max_tokens=300, ignore_eos=True, logprobs=logprobs)[0] for text in TEXTS]
    out["one"], out["gaps"] = _tokens(singles), [_gaps(single) for single in singles]
    out["four"] = _tokens(_generate(llm, TEXTS, max_tokens=300, ignore_eos=True))
    stopped = _generate(llm, TEXTS, max_tokens=100, stop=["return", "\n\n", "item 9"])
    out["stop"] = [(o.outputs[0].text, o.outputs[0].finish_reason, o.outputs[0].stop_reason) for o in stopped]
    repeated = "<|im_start|>user\n" + "alpha beta gamma delta\n" * 180 + "<|im_end|>\n<|im_start|>assistant\nalpha beta"
    ceiling = _generate(llm, [repeated], max_tokens=2000, ignore_eos=True)
    out["ceiling"] = _tokens(ceiling)
    out["ceiling_reasons"] = [o.outputs[0].finish_reason for o in ceiling]
    out["ceiling_lengths"] = [len(o.prompt_token_ids) + len(o.outputs[0].token_ids) for o in ceiling]
    schema = StructuredOutputsParams(json=SCHEMA)
    out["json"] = [o.outputs[0].text for o in _generate(llm, TEXTS[1:2], max_tokens=200, structured_outputs=schema)]
    two = {"temperature": 1.0, "top_k": 1, "n": 2}  # vLLM allows n > 1 only when sampling; top_k=1 is greedy
    out["two"] = _tokens(_generate(llm, TEXTS[:2], max_tokens=60, ignore_eos=True, **two))
    ways = {"plain": {}, "top_p": {"top_p": 0.8}, "top_k": {"top_k": 4}}
    out["sampled"] = {name: _sample(llm, 120, **way) for name, way in ways.items()}
    if drafted:
        out["stats"] = llm.collective_rpc("agspec_stats")[0]
    return out


def contract() -> dict[str, Any]:
    """An engine whose drafter misbehaves in every way that kills vLLM; what was generated, and the errors counted."""
    import numpy as np

    from agspec.draft.counts import Draft

    llm = make_llm(
        "embedded", settings=Settings(max_draft=8), proposer=PROPOSER, dtype="float32", max_model_len=512,
        max_num_seqs=2,
    )  # fmt: skip
    proposer = llm.llm_engine.model_executor.driver_worker.model_runner.drafter
    out: dict[str, Any] = {}
    want = _tokens(_generate(llm, TEXTS[:2], max_tokens=24, ignore_eos=True))

    def with_draft(tokens: Any) -> Any:
        return lambda offers, num_rows: [Draft(tokens, "session", 1, np.ones(tokens.size), "other") for _ in offers]

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("a store that raises")

    ways = {
        "a draft longer than asked for": ("commit", with_draft(np.arange(300, dtype=np.int32))),
        "an id outside the vocabulary": ("commit", with_draft(np.asarray([1, 49152], np.int32))),
        "a negative id": ("commit", with_draft(np.asarray([-1, 5], np.int32))),
        "a list where an array belongs": ("commit", lambda offers, num_rows: [[1, 2] for _ in offers]),
        "too few drafts": ("commit", lambda offers, num_rows: []),
        "ask raises": ("ask", broken),
        "answer raises": ("answer", broken),
        "commit raises": ("commit", broken),
        "observe raises": ("observe", broken),
        "start raises": ("start", broken),
        "finish raises": ("finish", broken),
    }
    for name, (attribute, function) in ways.items():
        proposer.reset()
        proposer.errors.clear()
        setattr(proposer.drafter, attribute, function)
        got = _tokens(_generate(llm, TEXTS[:2], max_tokens=24, ignore_eos=True))
        out[name] = {"same": got == want, "errors": dict(proposer.errors)}
    proposer.reset()
    proposer.errors.clear()
    proposer.drafter.intake.step = broken
    out["intake raises"] = {
        "same": _tokens(_generate(llm, TEXTS[:2], max_tokens=24, ignore_eos=True)) == want,
        "errors": dict(proposer.errors),
    }
    proposer.reset()
    runner, proposer.runner = proposer.runner, None
    out["not attached"] = {"same": _tokens(_generate(llm, TEXTS[:2], max_tokens=24, ignore_eos=True)) == want}
    proposer.runner = runner
    out["random calls"] = random_calls(proposer, calls=10_000)
    out["wrong drafts"] = wrong_drafts(llm)
    return out


def wrong_drafts(llm: Any) -> Any:
    """What a short profile measures once the engine drafts wrong tokens only; its Cells."""
    from agspec.engine.profile import time_cells
    from agspec.engine.wrong import WrongProposer

    llm.llm_engine.model_executor.driver_worker.model_runner.drafter = WrongProposer(llm.llm_engine.vllm_config)
    return time_cells(llm, PROFILE, lambda done, total, what: None)


def random_calls(proposer: Any, *, calls: int) -> dict[str, Any]:
    """Call a real proposer with random rows that come, move and go; what was illegal, and how much was drafted."""
    from collections import Counter
    from types import SimpleNamespace

    import numpy as np

    rng = np.random.default_rng(1)
    width, k, vocabulary = proposer.max_model_len, proposer.num_speculative_tokens, proposer.vocab_size
    tokens = np.zeros((16, width), np.int32)
    lengths, prompts = np.zeros(16, np.int32), np.zeros(16, np.int32)
    rows: list[str] = []
    batch = SimpleNamespace(req_ids=rows, num_prompt_tokens=prompts)
    proposer.reset()
    proposer.errors.clear()
    proposer.runner = SimpleNamespace(input_batch=batch, requests={})
    drafts: list[list[int]] = []
    illegal: list[str] = []
    counts: Counter[str] = Counter()

    def move(source: int, target: int) -> None:
        rows[target] = rows[source]
        tokens[target], lengths[target], prompts[target] = tokens[source], lengths[source], prompts[source]

    for number in range(calls):
        while len(rows) < rng.integers(1, 17) and len(rows) < 16:
            i, size = len(rows), int(rng.integers(1, width - 2))
            spread = int(rng.choice([3, 60, vocabulary]))
            tokens[i, :size] = rng.integers(0, spread, size)
            lengths[i] = prompts[i] = size
            extra = {
                "agspec_session": f"s{rng.integers(9)}",
                "agspec_tenant": f"t{rng.integers(3)}",
                "agspec_role": "coder",
            }
            params = SimpleNamespace(extra_args=extra if rng.random() < 0.7 else None)
            rows.append(f"r{number}-{i}")
            proposer.runner.requests[rows[i]] = SimpleNamespace(sampling_params=params)
            drafts.insert(i, [])
        sampled = []
        for i in range(len(rows)):
            drafted = drafts[i] if i < len(drafts) else []
            new = drafted[: rng.integers(0, len(drafted) + 1)] if rng.random() < 0.6 else []
            new = [*new, int(rng.choice([tokens[i, max(0, lengths[i] - 9)], rng.integers(0, vocabulary)]))]
            new = [] if rng.random() < 0.05 else new[: width - int(lengths[i])]
            tokens[i, lengths[i] : lengths[i] + len(new)] = new
            lengths[i] += len(new)
            sampled.append(new)
        drafts = proposer.propose(sampled, lengths, tokens)
        if type(drafts) is not list or len(drafts) != len(rows):
            illegal.append(f"call {number}: {len(rows)} rows, got {drafts!r:.80}")
        for i, draft in enumerate(drafts):
            room = min(k, width - int(lengths[i]) - 1)
            legal = type(draft) is list and len(draft) <= max(0, room)
            if not legal or not all(type(token) is int and 0 <= token < vocabulary for token in draft):
                illegal.append(f"call {number}, row {i}: {draft!r:.80}")
            counts["tokens"] += len(draft)
            counts["rows"] += 1
        for i in reversed(range(len(rows))):
            if lengths[i] >= width - 1 or rng.random() < 0.03:
                proposer.drafter.finish(rows[i])
                move(len(rows) - 1, i)
                drafts[i] = drafts[-1]
                rows.pop()
                drafts.pop()
        if len(rows) > 1 and rng.random() < 0.3:
            spare = [rows[0], tokens[0].copy(), lengths[0], prompts[0], drafts[0]]
            move(len(rows) - 1, 0)
            drafts[0] = drafts[-1]
            last = len(rows) - 1
            rows[last], tokens[last], lengths[last], prompts[last], drafts[last] = spare
    return {"illegal": illegal, "errors": dict(proposer.errors), **counts}


def taped(tenants: Any, last: Any, settings: Settings, max_model_len: int) -> dict[str, Any]:
    """Planned sessions along their tapes with agspec; the drafts it made, and the run's own counts.

    ``last``: a call that ends where the context does.
    """
    from agspec.engine import patches
    from agspec.engine.drive import drive

    patches.force_tapes()
    llm = make_llm("embedded", settings=settings, proposer=SWITCH, max_model_len=max_model_len, max_num_seqs=2)
    out = {}
    for method in ("agspec", "none", "suffix"):
        llm.collective_rpc("agspec_switch", args=(method,))
        llm.reset_prefix_cache()
        run = drive(llm, tenants[0][1], batch=1, tenant="", agspec=method == "agspec")
        stats = llm.collective_rpc("agspec_stats")[0]
        out[method] = {"run": run, "drafts": [tokens for _, tokens in stats["drafts"]], "errors": stats["errors"]}
    llm.collective_rpc("agspec_switch", args=("agspec",))
    out["two rows"] = {"run": drive(llm, tenants[0][1], batch=2, tenant="", agspec=True)}
    for method in ("none", "suffix", "agspec"):
        llm.collective_rpc("agspec_switch", args=(method,))
        run = drive(llm, [[last]], batch=1, tenant="", agspec=method == "agspec")
        out[f"{method} to the limit"] = {"run": run}
    return out
