"""Files that grow record by record: each is appended whole or not at all, for its owner's eyes only."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from agspec.errors import InputError


def append_whole(path: Path, data: Callable[[bool], bytes]) -> None:
    """Append ``data(new)``, ``new``: the file was empty or not there; mode 0600. InputError where it cannot be."""
    size = None
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            size = os.fstat(handle).st_size
            content = data(not size)
            if os.write(handle, content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            if size is not None:
                os.ftruncate(handle, size)
            raise
        finally:
            os.close(handle)
    except OSError as error:
        raise InputError(f"{path}: want a place to record to, got: {error.strerror}") from error
