"""Compiled functions that read a suffix automaton's arrays and change nothing: match, continuations, soundness."""

from agspec.draft.kernels import (
    AFTER,
    COUNT,
    COUNTED,
    HEAD,
    LENGTH,
    LINK,
    NONE,
    NUM_EDGES,
    NUM_STATES,
    RECENT,
    ROOT,
    SOURCE,
    TARGET,
    TOKEN,
    find,
    jit,
)


@jit
def match(a, context):
    """(state, length) of the longest suffix of ``context`` that occurs; context int32 [<= MAX_CONTEXT]."""
    state = ROOT
    length = 0
    for i in range(context.size):
        token = context[i]
        edge = find(a, state, token)
        while edge == NONE and state != ROOT:
            state = a.states[state, LINK]
            length = a.states[state, LENGTH]
            edge = find(a, state, token)
        if edge != NONE:
            state = a.edges[edge, TARGET]
            length += 1
    return state, length


@jit
def continuations(a, state, tokens, counts, recents):
    """Fill the three int32 arrays with what followed ``state``; how many there are (may exceed the arrays' size)."""
    edge = a.states[state, HEAD]
    n = 0
    while edge != NONE:
        if n < tokens.size:
            tokens[n] = a.edges[edge, TOKEN]
            counts[n] = a.states[a.edges[edge, TARGET], COUNT]
            recents[n] = a.states[a.edges[edge, TARGET], RECENT]
        n += 1
        edge = a.edges[edge, AFTER]
    return n


@jit
def check(a):
    """0 when the automaton is sound, else the number of the broken rule (see ``Automaton.check``)."""
    states, edges = a.used[NUM_STATES], a.used[NUM_EDGES]
    if a.states[ROOT, LENGTH] != 0 or a.states[ROOT, LINK] != NONE:
        return 1
    for state in range(1, states):
        link = a.states[state, LINK]
        if not 0 <= link < states or a.states[link, LENGTH] >= a.states[state, LENGTH]:
            return 2
        if a.states[state, COUNT] > a.states[link, COUNT] and a.states[link, LENGTH] < COUNTED:
            return 3
    seen = 0
    for state in range(states):
        edge = a.states[state, HEAD]
        while edge != NONE:
            seen += 1
            if a.edges[edge, SOURCE] != state + 1 or find(a, state, a.edges[edge, TOKEN]) != edge:
                return 4
            if a.states[a.edges[edge, TARGET], LENGTH] <= a.states[state, LENGTH]:
                return 5
            edge = a.edges[edge, AFTER]
    if seen != edges:
        return 6
    return 0


@jit
def longest(a, context):
    """As ``match``, but a short suffix first: most matches are short, and then the long walk is spared."""
    state, length = match(a, context[-16:])
    if length == 16 and context.size > 16:
        return match(a, context)
    return state, length


@jit
def latest(a, context):
    """(state, length, position) of the longest suffix of ``context`` that something followed, and its latest end."""
    state, length = match(a, context)
    while state != ROOT:
        position = NONE
        edge = a.states[state, HEAD]
        while edge != NONE:
            position = max(position, a.states[a.edges[edge, TARGET], RECENT])
            edge = a.edges[edge, AFTER]
        if position != NONE:
            return state, length, position - 1
        state = a.states[state, LINK]
        length = a.states[state, LENGTH]
    return ROOT, 0, NONE
