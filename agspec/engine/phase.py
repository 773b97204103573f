"""One engine in a process of its own: it starts, answers jobs, and ends without a trace."""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from agspec.errors import AgspecError, InputError


def run_phase(function: Callable[..., Any], *args: Any, report: Callable[..., None] | None = None) -> Any:
    """``function(*args)`` in a fresh process; AgspecError passes through, anything else becomes one line.

    With ``report`` the function gets one more argument: called with plain data there, it calls ``report`` here.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(theirs, function, args, report is not None))
    process.start()
    theirs.close()
    try:
        ok, value = ours.recv()
        while ok is None and report is not None:
            report(*value)
            ok, value = ours.recv()
    except EOFError:
        process.join()
        raise InputError(f"the engine's process ended with code {process.exitcode} and no answer") from None
    process.join()
    if not ok:
        raise value
    return value


def _run(pipe: Any, function: Callable[..., Any], args: tuple[Any, ...], reports: bool) -> None:
    _quiet()
    if reports:
        args = (*args, lambda *told: pipe.send((None, told)))
    try:
        pipe.send((True, function(*args)))
    except AgspecError as error:
        pipe.send((False, InputError(str(error))))
    except Exception as error:  # whatever the engine raises is told in one line
        traceback.print_exc(file=sys.stderr)
        reason = str(error).strip().splitlines() or [""]
        pipe.send((False, InputError(f"the engine failed: {type(error).__name__}: {reason[-1]}")))
    pipe.close()
    sys.stdout.flush()
    os._exit(0)


def _quiet() -> None:
    """The engine talks on stderr only; AGSPEC_VERBOSE=1 lets its start-up messages through."""
    os.dup2(2, 1)
    if os.environ.get("AGSPEC_VERBOSE") != "1":
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        os.environ.setdefault("PYTHONWARNINGS", "ignore")
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
        os.environ.setdefault("TQDM_DISABLE", "1")
