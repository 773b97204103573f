"""How likely a candidate's tokens are to be accepted, learned while drafting.

A logistic model over one-hot features, trained online: the tokens that came say which candidates were right, drafted
or not. It starts from a plain prior (longer match, likelier) or from what ``agspec calibrate`` learned, and goes on
learning: per tenant, deterministic. Learning rates shrink per feature as in AdaGrad (Duchi et al. 2011).

GROUPS names the features of token k of a candidate. ``agreement``: for each other source whether it says the same up
to here, has parted, or says nothing. The HASHED groups tell tokens apart, in hashed slots.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agspec.draft.kernels import jit
from agspec.draft.names import REGION_NAMES
from agspec.draft.panel import NUM_SOURCES

Weights = npt.NDArray[np.float32]

LENGTHS, CHANCES, POSITIONS, COUNTS, SHARES, FARED, ROLES = 12, 16, 9, 6, 6, 12, 12
SMALL, LARGE = 1 << 12, 1 << 15
STATES = 3 ** (NUM_SOURCES - 1)

GROUPS: dict[str, tuple[int, ...]] = {
    "source": (NUM_SOURCES,),
    "length": (NUM_SOURCES, LENGTHS),
    "chance": (NUM_SOURCES, CHANCES),
    "position": (LENGTHS, POSITIONS),
    "evidence": (COUNTS, SHARES, LENGTHS),
    "fared": (FARED, POSITIONS),
    "agreement": (NUM_SOURCES, STATES),
    "agreeing": (NUM_SOURCES, NUM_SOURCES, CHANCES),
    "role": (ROLES, CHANCES),
    "region": (len(REGION_NAMES), CHANCES),
    "region position": (len(REGION_NAMES), POSITIONS),
    "token": (SMALL,),
    "token before": (SMALL,),
    "pair": (LARGE,),
    "triple": (LARGE,),
    "pair before": (LARGE,),
    "token x chance": (LARGE,),
    "token x length": (LARGE,),
    "token x agreement": (LARGE,),
}
HASHED = ("token", "token before", "pair", "triple", "pair before", "token x chance", "token x length",
          "token x agreement")  # fmt: skip
NUM_FEATURES = len(GROUPS)
STARTS = np.cumsum([0, *(int(np.prod(shape)) for shape in GROUPS.values())])
NUM_WEIGHTS = int(STARTS[-1])
RATE = 0.25
PRIOR_LENGTH = (-2.0, -1.2, -0.6, -0.2, 0.1, 0.3, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6)


@jit
def _length_bucket(length):
    for bucket, last in enumerate((0, 1, 2, 3, 4, 5, 7, 10, 15, 23, 40)):
        if length <= last:
            return bucket
    return 11


@jit
def _position_bucket(k):
    for bucket, last in enumerate((0, 1, 2, 3, 5, 9, 15, 27)):
        if k <= last:
            return bucket
    return 8


@jit
def _chance_bucket(p):
    p = min(max(p, 1e-6), 1 - 1e-6)
    return min(CHANCES - 1, max(0, int((np.log(p / (1 - p)) + 3.0) * 2.0)))


@jit
def _count_bucket(count):
    bucket = 0
    while count > 1 and bucket < COUNTS - 1:
        count //= 2
        bucket += 1
    return bucket


@jit
def _share_bucket(hits, count):
    if hits <= 0:
        return 0
    if hits >= count:
        return 5
    return 1 + int(4 * hits / count)


@jit
def _hash(a, b, c, size):
    mixed = (a * 0x9E3779B1 + b * 0x85EBCA6B + c * 0xC2B2AE35) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & 0xFFFFFFFF
    return (mixed >> 8) % size


@jit
def _parted(tokens, sizes, out):
    """``out[a, b]``: tokens that the candidates of a and b share from the start."""
    for a in range(NUM_SOURCES):
        for b in range(a):
            n = 0
            while n < min(sizes[a], sizes[b]) and tokens[a, n] == tokens[b, n]:
                n += 1
            out[a, b] = n
            out[b, a] = n


@jit
def _features(b, parted, s, k, out):
    own = b.tokens[s, k]
    before = b.tokens[s, k - 1] if k > 0 else b.moment[0]
    two_before = b.tokens[s, k - 2] if k > 1 else b.moment[1 - k]
    length = _length_bucket(b.lengths[s])
    longer = _length_bucket(b.lengths[s] + k)
    position = _position_bucket(k)
    chance = _chance_bucket(b.probs[s, k])
    region = b.regions[s, k]
    state, agree, differ = 0, 0, 0
    for o in range(NUM_SOURCES):
        if o == s:
            continue
        state *= 3
        if b.sizes[o] > k and parted[s, o] > k:
            state += 1
            agree += 1
        elif parted[s, o] <= k and parted[s, o] < b.sizes[o]:
            state += 2
            differ += 1
    out[0] = s
    out[1] = s * LENGTHS + longer
    out[2] = s * CHANCES + chance
    out[3] = length * POSITIONS + position
    out[4] = (_count_bucket(b.counts[s, k]) * SHARES + _share_bucket(b.hits[s, k], b.counts[s, k])) * LENGTHS + longer
    out[5] = b.moment[2] * POSITIONS + position
    out[6] = s * STATES + state
    out[7] = (agree * NUM_SOURCES + differ) * CHANCES + chance
    out[8] = b.moment[3] * CHANCES + chance
    out[9] = region * CHANCES + chance
    out[10] = region * POSITIONS + position
    out[11] = _hash(own, 0, 0, SMALL)
    out[12] = _hash(before, 0, 0, SMALL)
    out[13] = _hash(own, before, 0, LARGE)
    out[14] = _hash(own, before, two_before, LARGE)
    out[15] = _hash(before, two_before, 1, LARGE)
    out[16] = _hash(own, chance, 2, LARGE)
    out[17] = _hash(own, longer, s, LARGE)
    out[18] = _hash(own, agree * NUM_SOURCES + differ, s, LARGE)
    for i in range(NUM_FEATURES):
        out[i] += STARTS[i]


@jit
def _chance(weights, features):
    z = 0.0
    for feature in features:
        z += weights[feature]
    return 1.0 / (1.0 + np.exp(-z))


@jit
def judge(weights, board, floor):
    """Fill ``chances`` and ``kept``: tokens until the product of chances is under ``floor``."""
    b = board
    features = np.empty(NUM_FEATURES, np.int64)
    parted = np.zeros((NUM_SOURCES, NUM_SOURCES), np.int64)
    _parted(b.tokens, b.sizes, parted)
    for s in range(NUM_SOURCES):
        survival = 1.0
        b.kept[s] = b.sizes[s]
        for k in range(b.sizes[s]):
            _features(b, parted, s, k, features)
            b.chances[s, k] = _chance(weights, features)
            survival *= b.chances[s, k]
            if survival < floor:
                b.kept[s] = k
                break


@jit
def learn(weights, squares, board, came):
    """One gradient step for each token that ``came`` decides, up to a candidate's first wrong one; longest run."""
    b = board
    features = np.empty(NUM_FEATURES, np.int64)
    parted = np.zeros((NUM_SOURCES, NUM_SOURCES), np.int64)
    _parted(b.tokens, b.sizes, parted)
    best = 0
    for s in range(NUM_SOURCES):
        for k in range(min(b.sizes[s], came.size)):
            right = b.tokens[s, k] == came[k]
            _features(b, parted, s, k, features)
            error = (1.0 if right else 0.0) - _chance(weights, features)
            for feature in features:
                squares[feature] += error * error
                weights[feature] += RATE * error / np.sqrt(squares[feature])
            if not right:
                break
            best = max(best, k + 1)
    return best


@dataclass(frozen=True)
class OddsState:
    """What a model has learned: ``weights`` and sums of squared errors, float32 [NUM_WEIGHTS]."""

    weights: Weights
    squares: Weights


def prior() -> OddsState:
    """Longer match and likelier by the store's own count: likelier; all else unknown."""
    weights = np.zeros(NUM_WEIGHTS, np.float32)
    for source in range(NUM_SOURCES):
        weights[STARTS[1] + source * LENGTHS :][:LENGTHS] = PRIOR_LENGTH
        weights[STARTS[2] + source * CHANCES :][:CHANCES] = (np.arange(CHANCES) / 2 - 2.75) * 0.5
    return OddsState(weights, np.ones(NUM_WEIGHTS, np.float32))


class Odds:
    """The model of one tenant: ``judge`` reads it, ``learn`` changes it."""

    def __init__(self, start: OddsState | None = None) -> None:
        state = prior() if start is None else start
        self.weights, self.squares = state.weights.copy(), state.squares.copy()

    @property
    def state(self) -> OddsState:
        """What has been learned so far."""
        return OddsState(self.weights.copy(), self.squares.copy())
