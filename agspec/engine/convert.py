"""``python -m agspec.engine.convert GGUF FOLDER``: the embedded model's GGUF as a folder vLLM loads.

In a process of its own, so that torch and transformers stay out of the caller's.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path


def convert(source: Path, target: Path) -> None:
    """Write tokenizer, configuration and bfloat16 safetensors of ``source`` into ``target``."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # type: ignore[no-untyped-call]
    where, name = str(source.parent), source.name
    AutoTokenizer.from_pretrained(where, gguf_file=name).save_pretrained(target)
    model = AutoModelForCausalLM.from_pretrained(
        where, gguf_file=name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
    )
    model.save_pretrained(target)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TQDM_DISABLE", "1")
    logging.disable(logging.WARNING)
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
