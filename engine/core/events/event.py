"""What all events share."""

from typing import Annotated, ClassVar

import msgspec

Tokens = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""A number of tokens; a larger one in a log is damage, and no float would have it."""


class RecordedEvent:
    """What all events share. An event's kind and subject together are unique in a log.

    Attributes:
        KIND: its kind.
        NAMED_BY: the fields that make up its subject.
    """

    __slots__ = ()
    KIND: ClassVar[str]
    NAMED_BY: ClassVar[tuple[str, ...]]

    @property
    def subject(self) -> str:
        """What tells it from the others of its kind."""
        return ".".join(str(getattr(self, name)) for name in self.NAMED_BY)
