"""A frozen corpus: outputs in one automaton, in a folder of arrays that are memory-mapped.

``corpus.json`` says for which tokenizer (fingerprint) and from what it was made. The folder appears whole or not at
all. ``agspec.replay.corpus`` makes one from traces.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from agspec.draft.automaton import Automaton
from agspec.draft.kernels import Arrays
from agspec.errors import InputError
from agspec.tokens import Tokenizer

FORMAT = 1
META = "corpus.json"


def save_corpus(automaton: Automaton, target: Path, info: dict[str, Any]) -> None:
    """Write ``automaton`` and what ``info`` says of it to the new folder ``target``."""
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        for name, array in automaton.arrays._asdict().items():
            np.save(work / f"{name}.npy", array)
        (work / META).write_text(json.dumps({"agspec_corpus": FORMAT, **info}, indent=1))
        work.rename(target)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def open_corpus(folder: Path, tokenizer: Tokenizer) -> Automaton:
    """The automaton of a corpus folder, memory-mapped; InputError when it is none, or made for other token ids."""
    try:
        info = json.loads((folder / META).read_text())
        arrays = {name: np.asarray(np.load(folder / f"{name}.npy", mmap_mode="c")) for name in Arrays._fields}
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}: want a corpus folder (agspec corpus build), got: {error}") from error
    if info.get("agspec_corpus") != FORMAT:
        raise InputError(f"{folder}: want a corpus of format {FORMAT}, got {info.get('agspec_corpus')!r}")
    if info.get("tokenizer") != tokenizer.fingerprint:
        raise InputError(
            f"{folder}: made for tokenizer {info.get('tokenizer')}, the model has {tokenizer.fingerprint} "
            f"({tokenizer.name}): build the corpus again"
        )
    return Automaton.from_arrays(Arrays(**arrays))
