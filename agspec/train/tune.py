"""A pilot: adapters (LoRA, by peft) trained on copy programs, and how many edits come out exact before and after.

Held-out edits are decoded by vLLM as they are served, under the grammar, greedily. The weights that come out are whole,
adapters merged, so that ``agspec serve`` loads them like any model.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from agspec import embedded
from agspec.copyedit.program import parse
from agspec.copyedit.resolve import resolve
from agspec.copyedit.source import Source
from agspec.copyedit.token_machine import Vocabulary
from agspec.engine.copies.edits import SCHEDULER, Edits
from agspec.engine.copies.request import CopyRequest
from agspec.engine.launcher import make_llm
from agspec.engine.phase import run_phase
from agspec.errors import CopyError, InputError, MissingExtraError
from agspec.replay.environment import environment
from agspec.serve.edits.prompt import tokens_of
from agspec.settings import Settings
from agspec.tokens import load_tokenizer
from agspec.train.records import Record

if TYPE_CHECKING:
    import torch

Report = Callable[[int, int, str], None]
MOST_TOKENS = 400
"""Of a program."""
IGNORED = -100
"""Label of tokens that are not learned: the prompt's."""
PROJECTIONS = "all-linear"


class Job(BaseModel):
    """How to train. ``held_out``: records that are not trained on; ``rank``, ``rate``: of the adapters; ``accumulate``:
    records an optimizer step; it ends after ``minutes``, or ``epochs`` over the records."""

    model_config = ConfigDict(frozen=True)

    model: str
    output: Path
    minutes: float = 20
    epochs: int = 3
    held_out: int = 40
    rank: int = 16
    rate: float = 3e-4
    accumulate: int = 8
    max_model_len: int = 4096
    seed: int = 0


def tune(job: Job, found: Sequence[Record], report: Report) -> dict[str, Any]:
    """Train; how it went. The model's folder comes whole or not at all. Raises InputError, MissingExtraError."""
    if importlib.util.find_spec("peft") is None:
        raise MissingExtraError("peft", "train")
    if job.output.exists():
        raise InputError(f"{job.output}: want a folder that does not exist yet, found one")
    held, kept = split(found, job.held_out)
    report(0, 3, f"{len(held)} edits before")
    before = run_phase(evaluate, job.model, job.max_model_len, held)
    job.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{job.output.name}-", dir=job.output.parent) as scratch:
        folder = Path(scratch) / "model"
        report(1, 3, f"training on {len(kept)} edits, at most {job.minutes:g} min")
        trained = run_phase(train, job, kept, str(folder))
        report(2, 3, f"{len(held)} edits after")
        after = run_phase(evaluate, str(folder), job.max_model_len, held)
        shutil.move(folder, job.output)
    return {
        "kind": "copy train", "job": job.model_dump(mode="json"), "environment": environment(),
        "num_held_out": len(held), "num_kept": len(kept), "before": before, "training": trained, "after": after,
    }  # fmt: skip


def split(found: Sequence[Record], held_out: int) -> tuple[list[Record], list[Record]]:
    """(held out, kept): by a hash of what is edited, so that the same record is on the same side in every run."""
    ordered = sorted(found, key=lambda record: hashlib.sha256(record["before"].encode()).digest())
    if len(ordered) <= held_out:
        raise InputError(f"want more records than the {held_out} held out, got {len(ordered)}")
    texts = {record["before"] for record in ordered[:held_out]}
    return ordered[:held_out], [record for record in ordered[held_out:] if record["before"] not in texts]


def evaluate(model: str, max_model_len: int, held: Sequence[Record]) -> dict[str, Any]:
    """How many programs resolve to exactly what is wanted, to something else, or came to no end."""
    llm = make_llm(
        model, settings=Settings(), proposer=None, max_model_len=max_model_len, max_num_seqs=8,
        scheduler_cls=SCHEDULER, async_scheduling=False,
    )  # fmt: skip
    vocabulary = Vocabulary(load_tokenizer(model))
    chat = llm.get_tokenizer()
    edits = Edits(llm, vocabulary.end)
    begun = []
    for number, record in enumerate(held):
        prompt = tokens_of(chat, record["messages"][:-1])
        request = CopyRequest(sources=(record["before"],), max_tokens=MOST_TOKENS)
        begun.append(edits.start(f"edit{number}", prompt, request))
    edits.run()
    exact = resolved = copied = 0
    for record, edit in zip(held, begun, strict=True):
        source = Source(record["before"].encode())
        try:
            text = resolve(parse(vocabulary.bytes_of(edit.tokens)), [source])
        except CopyError:
            continue
        resolved += edit.done
        copied += edit.num_splices > 0
        exact += edit.done and text == record["after"].encode()
    return {"exact": exact, "resolved": resolved, "with_copies": copied, "of": len(held)}


def train(job: Job, kept: Sequence[Record], folder: str) -> dict[str, Any]:
    """Adapters trained and merged; the model and its tokenizer land in ``folder``."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(job.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    source = embedded.resolve(job.model)
    chat = AutoTokenizer.from_pretrained(source)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    base: Any = AutoModelForCausalLM.from_pretrained(source, dtype=dtype)
    base = base.to(device=device)
    config = LoraConfig(r=job.rank, lora_alpha=2 * job.rank, target_modules=PROJECTIONS, task_type="CAUSAL_LM")
    model: Any = get_peft_model(base, config)
    model.train()
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=job.rate)
    started, losses, number = time.monotonic(), [], 0
    share = 0.0
    for tokens, labels in _batches(chat, kept, job):
        share = max(number / (job.epochs * len(kept)), (time.monotonic() - started) / (60 * job.minutes))
        if share >= 1:
            break
        loss = model(input_ids=tokens.to(device), labels=labels.to(device)).loss
        (loss / job.accumulate).backward()
        losses.append(float(loss.detach()))
        number += 1
        if number % job.accumulate == 0:
            for group in optimizer.param_groups:
                group["lr"] = job.rate * max(0.05, 1 - share)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    model.merge_and_unload().to(torch.bfloat16).save_pretrained(folder)
    chat.save_pretrained(folder)
    part = max(1, min(20, len(losses) // 4))
    return {
        "num_records": number, "minutes": round((time.monotonic() - started) / 60, 2),
        "loss_first": round(sum(losses[:part]) / part, 3), "loss_last": round(sum(losses[-part:]) / part, 3),
    }  # fmt: skip


def _batches(chat: Any, kept: Sequence[Record], job: Job) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """(tokens, labels), int64 [1, n] each, shuffled anew in each epoch; the prompt is not learned."""
    import torch

    generator = torch.Generator().manual_seed(job.seed)
    for _ in range(job.epochs):
        for i in torch.randperm(len(kept), generator=generator).tolist():
            told = kept[i]["messages"]
            whole = tokens_of(chat, told, add_generation_prompt=False)
            tokens = torch.tensor([whole[: job.max_model_len]])
            labels = tokens.clone()
            labels[0, : len(tokens_of(chat, told[:-1]))] = IGNORED
            yield tokens, labels
