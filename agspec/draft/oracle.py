"""Brute force over plain lists: the executable specification of ``automaton.py``."""

from collections.abc import Sequence


class Oracle:
    """The same operations as ``Automaton``, by scanning every document."""

    def __init__(self, max_context: int) -> None:
        self.max_context = max_context
        self.documents: list[list[int]] = []
        self.order: list[tuple[int, int]] = []

    def open(self) -> int:
        """A new, empty document."""
        self.documents.append([])
        return len(self.documents) - 1

    def extend(self, document: int, tokens: Sequence[int]) -> None:
        """Append ``tokens`` to ``document``."""
        for token in tokens:
            self.documents[document].append(token)
            self.order.append((document, len(self.documents[document])))

    def occurrences(self, text: Sequence[int]) -> list[int]:
        """Positions (order of arrival of the last token) at which ``text`` ends."""
        wanted, n = list(text), len(text)
        return [
            i
            for i, (document, end) in enumerate(self.order)
            if end >= n and self.documents[document][end - n : end] == wanted
        ]

    def match(self, context: Sequence[int]) -> int:
        """Length of the longest suffix of ``context`` (at most max_context) that occurs."""
        return next((n for n in range(min(len(context), self.max_context), 0, -1) if self.occurrences(context[-n:])), 0)

    def continuations(self, context: Sequence[int]) -> dict[int, tuple[int, int]]:
        """token -> (count, latest position) of what followed ``context``."""
        followed = {
            self.documents[document][end] for document, end in self.order if end < len(self.documents[document])
        } | {document[0] for document in self.documents if document}
        found = {token: self.occurrences([*context, token]) for token in followed}
        return {token: (len(places), places[-1]) for token, places in found.items() if places}
