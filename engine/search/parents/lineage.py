"""Lineage: which program was made from which, as an island was told.

A program that was not told as a child, such as a migrant, has no parent here: it is the root of
its own tree.

Covers: parents and ancestors. Does not cover scores.
"""

from collections.abc import Iterator

from engine.search.parents import ParentOutcome


class Lineage:
    """The forest of the programs told so far, in the order in which they were told."""

    def __init__(self) -> None:
        """Start without a program."""
        self._parents: dict[str, str | None] = {}

    def add(self, outcome: ParentOutcome) -> None:
        """Take in a parent and its children.

        Raises:
            ValueError: one of the children is known already; nothing is taken in then.
        """
        ids = [child.id for child in outcome.children]
        known = [each for each in ids if each in self._parents or each == outcome.parent]
        if known or len(set(ids)) < len(ids):
            raise ValueError(
                f"iteration {outcome.iteration} tells of a child that is known already: {ids}"
            )
        self._parents.setdefault(outcome.parent, None)
        self._parents.update(dict.fromkeys(ids, outcome.parent))

    def __iter__(self) -> Iterator[str]:
        """Yield all programs, each after its parent."""
        return iter(self._parents)

    def __contains__(self, candidate_id: str) -> bool:
        """Return whether a program was told."""
        return candidate_id in self._parents

    def parent(self, candidate_id: str) -> str | None:
        """Return the id of the program that one was made from; None for a root."""
        return self._parents.get(candidate_id)

    def upward(self, candidate_id: str) -> Iterator[str]:
        """Yield a program, its parent, the parent's parent and so on, to the root."""
        current: str | None = candidate_id
        while current is not None:
            yield current
            current = self._parents.get(current)
