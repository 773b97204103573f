"""Arrays handed to compiled code by address: a call costs the same for however many.

Whoever tells an address keeps the array alive, and in its place, for as long as the address may be read.
"""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba.core import cgutils, types
from numba.extending import intrinsic

from agspec.draft.kernels import Arrays, jit

Addresses = npt.NDArray[np.int64]

END, AUTOMATON, SORTED = 0, 1, 2
KIND, FIRST, NUM_FIRST, SECOND, NUM_SECOND, THIRD, NUM_THIRD = 0, 1, 2, 3, 4, 5, 6
PARTS = 32
"""Parts (segments) a lookup may have, and the END after them."""


@intrinsic
def _pointer(typing, address):
    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


@jit
def numbers(address, n):
    """The int32 [n] at ``address``."""
    return numba.carray(_pointer(address), (n,), np.int32)


@jit
def rows(address, n, columns):
    """The int32 [n, columns] at ``address``."""
    return numba.carray(_pointer(address), (n, columns), np.int32)


@jit
def longs(address, n):
    """The int64 [n] at ``address``."""
    return numba.carray(_pointer(address), (n,), np.int64)


@jit
def addresses(address, n, columns):
    """The int64 [n, columns] at ``address``."""
    return numba.carray(_pointer(address), (n, columns), np.int64)


@jit
def reals(address, n):
    """The float64 [n] at ``address``."""
    return numba.carray(_pointer(address), (n,), np.float64)


@jit
def real_rows(address, n, columns):
    """The float64 [n, columns] at ``address``."""
    return numba.carray(_pointer(address), (n, columns), np.float64)


@jit
def singles(address, n):
    """The float32 [n] at ``address``."""
    return numba.carray(_pointer(address), (n,), np.float32)


@jit
def byte_rows(address, n, columns):
    """The int8 [n, columns] at ``address``."""
    return numba.carray(_pointer(address), (n, columns), np.int8)


@jit
def automaton(part):
    """The arrays of the automaton that row ``part`` tells of."""
    states = rows(part[FIRST], part[NUM_FIRST], 5)
    edges = rows(part[SECOND], part[NUM_SECOND], 4)
    return Arrays(states, edges, numbers(part[THIRD], part[NUM_THIRD]))


def address(array: npt.NDArray[Any]) -> int:
    """Where the first byte of ``array`` is."""
    return int(array.__array_interface__["data"][0])


def tell(parts: list[tuple[int, tuple[npt.NDArray[np.int32], ...]]], out: Addresses) -> None:
    """Fill ``out`` [PARTS, 7] with a row for each part (its kind, its three arrays), and END."""
    out[:] = END
    for row, (kind, arrays) in zip(out, parts, strict=False):
        row[KIND] = kind
        row[FIRST::2] = [address(array) for array in arrays]
        row[NUM_FIRST::2] = [array.shape[0] for array in arrays]
