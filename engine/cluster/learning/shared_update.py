"""A shared update: a step of the trainer that is over, as islands hear of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from engine.core import Update


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedUpdate:
    """A step of the trainer that is over.

    Attributes:
        update: the step, with the groups of all islands.
        logs: of each group, the island whose log has the call.
    """

    update: Update
    logs: tuple[int, ...]

    def for_island(self, number: int) -> Update:
        """Return the step as the log of an island has it: with its own groups."""
        groups = zip(self.logs, self.update.groups, strict=True)
        return replace(self.update, groups=tuple(each for log, each in groups if log == number))


def shared_updates_of(recorded: Mapping[int, Sequence[Update]]) -> Sequence[SharedUpdate]:
    """Return the steps that any island has recorded, in their order.

    Args:
        recorded: the steps in each island's log, by island. Not every step is in every log.
    """
    found: dict[int, SharedUpdate] = {}
    for number, updates in recorded.items():
        for own in updates:
            known = found.get(own.number) or SharedUpdate(update=replace(own, groups=()), logs=())
            found[own.number] = SharedUpdate(
                update=replace(
                    known.update,
                    groups=known.update.groups + own.groups,
                    swap_ms=max(known.update.swap_ms, own.swap_ms),
                ),
                logs=known.logs + (number,) * len(own.groups),
            )
    return [found[number] for number in sorted(found)]
