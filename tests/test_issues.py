"""Public bug reports as input and right behaviour, where no other test has their number in its name.

Reports are of vLLM, SGLang, ArcticInference and others; the numbers are those of this project's list.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from agspec.draft.automaton import Automaton
from agspec.draft.suffix_tree import SuffixTreeLookup
from tests.test_automaton_large import text_like

ROOT = Path(__file__).resolve().parents[1]
TWIN = """
import sys
sys.path.insert(0, {root!r})
from tests.test_team import drafts
print(drafts(int(sys.argv[1])))
"""


def twin(seed: str, threads: int) -> str:
    """What one process with this PYTHONHASHSEED drafts."""
    line = [sys.executable, "-c", TWIN.format(root=str(ROOT)), str(threads)]
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run(line, env=environment, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def test_B1_B3_two_ranks_draft_the_same() -> None:
    """Ranks are fed the same events; neither hash seed nor number of threads decides anything."""
    one = twin("1", 1)
    assert one.count("[") > 500
    assert twin("2", 2) == one


def test_A4_a_prompt_of_a_hundred_thousand_tokens_takes_linear_room_and_time() -> None:
    automaton = Automaton(capacity=100_000)
    document = automaton.open()
    text = text_like(100_000)
    automaton.extend(document, text[:100])
    started = time.perf_counter()
    assert automaton.extend(document, text[100:]) == text.size - 100
    assert time.perf_counter() - started < 5
    assert automaton.num_states <= 2 * text.size


def test_C4_the_readme_says_what_is_promised_of_the_output() -> None:
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert re.search(r"\*\*Same output\*\* means: token-identical greedy output in float32 \(tested", text)


def test_F3_an_optional_package_that_is_missing_is_one_clear_line() -> None:
    code = "import sys; sys.modules['arctic_inference'] = None\nimport agspec.draft.suffix_tree"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert SuffixTreeLookup is not None
    assert "arctic-inference is not installed; it comes with: pip install 'agspec[bench]'" in done.stderr
