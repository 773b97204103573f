"""How likely a candidate's tokens are to be accepted, learned while drafting.

An online logistic model over one-hot features. It starts from a plain prior (longer match, likelier) and learns from
every step, drafted or not: the tokens that came say which candidates were right. Per tenant, deterministic.

Features of token k of a candidate: store; store x match length; store x chance the store gives it; match length x
position; the token's own id and the one before it (hashed); evidence count; how the row's last candidate fared.
Learning rates shrink per feature as in AdaGrad (Duchi et al. 2011).
"""

from __future__ import annotations

import numpy as np

from agspec.draft.kernels import jit
from agspec.draft.lookup import Candidate
from agspec.tokens import Tokens

NUM_STORES = 4
_LENGTHS = 12
_CHANCES = 10
_POSITIONS = 9
_COUNTS = 6
_FARED = 12
_HASHED = 4096
_STORE = 0
_LENGTH = _STORE + NUM_STORES
_CHANCE = _LENGTH + NUM_STORES * _LENGTHS
_POSITION = _CHANCE + NUM_STORES * _CHANCES
_COUNT = _POSITION + _LENGTHS * _POSITIONS
_LAST = _COUNT + _COUNTS * _LENGTHS
_OWN = _LAST + _FARED * _POSITIONS
_BEFORE = _OWN + _HASHED
NUM_WEIGHTS = _BEFORE + _HASHED
NUM_FEATURES = 8
RATE = 0.25
PRIOR_LENGTH = (-2.0, -1.2, -0.6, -0.2, 0.1, 0.3, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6)
PRIOR_CHANCE = (-2.0, -1.6, -1.2, -0.8, -0.4, 0.0, 0.4, 0.8, 1.0, 1.2)


@jit
def _length_bucket(length):
    if length <= 5:
        return length
    if length <= 7:
        return 6
    if length <= 10:
        return 7
    if length <= 15:
        return 8
    if length <= 23:
        return 9
    if length <= 40:
        return 10
    return 11


@jit
def _position_bucket(k):
    if k < 4:
        return k
    if k < 6:
        return 4
    if k < 10:
        return 5
    if k < 16:
        return 6
    if k < 28:
        return 7
    return 8


@jit
def _chance_bucket(p):
    if p < 0.9:
        return int(p * 8)
    return 8 if p < 0.97 else 9


@jit
def _count_bucket(count):
    bucket = 0
    while count > 1 and bucket < _COUNTS - 1:
        count //= 2
        bucket += 1
    return bucket


@jit
def _features(store, length, fared, tokens, probs, counts, before, k, out):
    longer = _length_bucket(length + k)
    bucket = _length_bucket(length)
    position = _position_bucket(k)
    out[0] = _STORE + store
    out[1] = _LENGTH + store * _LENGTHS + longer
    out[2] = _CHANCE + store * _CHANCES + _chance_bucket(probs[k])
    out[3] = _POSITION + bucket * _POSITIONS + position
    out[4] = _COUNT + _count_bucket(counts[k]) * _LENGTHS + longer
    out[5] = _LAST + fared * _POSITIONS + position
    previous = tokens[k - 1] if k > 0 else before
    out[6] = _OWN + ((tokens[k] * 0x9E3779B1) >> 7) % _HASHED
    out[7] = _BEFORE + ((previous * 0x9E3779B1) >> 7) % _HASHED


@jit
def _chance(weights, features):
    z = 0.0
    for feature in features:
        z += weights[feature]
    return 1.0 / (1.0 + np.exp(-z))


@jit
def judge(weights, store, length, fared, tokens, probs, counts, before, floor, out):
    """Fill ``out`` with the chance of each token; how many until the product falls under ``floor``."""
    features = np.empty(NUM_FEATURES, np.int64)
    survival = 1.0
    for k in range(tokens.size):
        _features(store, length, fared, tokens, probs, counts, before, k, features)
        out[k] = _chance(weights, features)
        survival *= out[k]
        if survival < floor:
            return k
    return tokens.size


@jit
def learn(weights, squares, store, length, fared, tokens, probs, counts, before, came):
    """One gradient step for each token that ``came`` decides, up to the first wrong one."""
    features = np.empty(NUM_FEATURES, np.int64)
    for k in range(min(tokens.size, came.size)):
        right = tokens[k] == came[k]
        _features(store, length, fared, tokens, probs, counts, before, k, features)
        error = (1.0 if right else 0.0) - _chance(weights, features)
        for feature in features:
            squares[feature] += error * error
            weights[feature] += RATE * error / np.sqrt(squares[feature])
        if not right:
            break


class Odds:
    """The model of one tenant."""

    def __init__(self) -> None:
        self._weights = np.zeros(NUM_WEIGHTS)
        self._squares = np.ones(NUM_WEIGHTS)
        for store in range(NUM_STORES):
            self._weights[_LENGTH + store * _LENGTHS :][:_LENGTHS] = PRIOR_LENGTH
            self._weights[_CHANCE + store * _CHANCES :][:_CHANCES] = PRIOR_CHANCE

    def judge(self, candidate: Candidate, *, store: int, fared: int, before: int, floor: float) -> Candidate:
        """``candidate`` with learned chances, cut where their product falls under ``floor``."""
        out = np.empty(candidate.tokens.size)
        n = judge(
            self._weights, store, candidate.match_length, fared, candidate.tokens, candidate.probs, candidate.counts,
            before, floor, out,
        )  # fmt: skip
        return Candidate(candidate.tokens[:n], out[:n], candidate.match_length, candidate.counts[:n])

    def learn(self, candidate: Candidate, came: Tokens, *, store: int, fared: int, before: int) -> None:
        """What came after ``candidate`` was made, int32 [n]."""
        learn(
            self._weights, self._squares, store, candidate.match_length, fared, candidate.tokens, candidate.probs,
            candidate.counts, before, came,
        )  # fmt: skip
