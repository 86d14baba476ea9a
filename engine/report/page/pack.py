"""Programs and their figures, packed into a page so that a browser can unpack those that it shows.

A pack is JSON, deflated and in base64. Programs resemble each other, so they shrink to a fraction.
"""

import base64
import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.core import Direction
from engine.report.page.text import cut, shown

_OF_A_PACK = 200  # programs
_NONE, _NO_ROOM = -1, -2
_LONGEST = 100_000  # characters of a program
_COLUMNS = ("id", "order", "seconds", "island", "operator", "parent", "outcome", "reason", "score")


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed:
    """The programs of a run.

    Attributes:
        index: a pack of the columns of all rows, ``pack`` among them: in which of the packs a
            program's text is; -1 for a child without a program, -2 where there was no room.
        packs: each a list of texts; a program's place in its pack is that among those with its
            number in the index.
        shown: programs whose text is there.
        left_out: programs with a text for which there was no room.
    """

    index: str
    packs: Sequence[str]
    shown: int
    left_out: int


def packed(
    rows: Sequence[Mapping[str, Any]],
    *,
    direction: Direction,
    first: Collection[str],
    room: int,
) -> Packed:
    """Pack the programs of a run.

    Args:
        rows: of `engine.report.tables.programs`, for one run.
        direction: of the score.
        first: ids of those whose text has to be there before others'; then the best come first.
        room: characters that all packs may take; one is always made.
    """
    ranks = _ranks(rows, direction)
    written = [place for place, row in enumerate(rows) if row["program"] is not None]
    written.sort(key=lambda place: (rows[place]["id"] not in first, ranks[place]))
    packs: list[str] = []
    of_row = [_NONE if row["program"] is None else _NO_ROOM for row in rows]
    used = done = 0
    for start in range(0, len(written), _OF_A_PACK):
        chunk = sorted(written[start : start + _OF_A_PACK])
        pack = _pack([cut(shown(rows[place]["program"]), _LONGEST) for place in chunk])
        if packs and used + len(pack) > room:
            break
        for place in chunk:
            of_row[place] = len(packs)
        packs.append(pack)
        used += len(pack)
        done += len(chunk)
    index: dict[str, list[Any]] = {key: [row[key] for row in rows] for key in _COLUMNS}
    index["seconds"] = [round(row["seconds"], 3) for row in rows]
    index["gain"] = [row["gain"] for row in rows]
    index["best"] = [int(row["new_best"]) for row in rows]
    index["message"] = [cut(shown(row["message"]), 300) for row in rows]
    index["rank"] = ranks
    index["pack"] = of_row
    return Packed(index=_pack(index), packs=packs, shown=done, left_out=len(written) - done)


def _ranks(rows: Sequence[Mapping[str, Any]], direction: Direction) -> list[int]:
    """Return each program's place when the best score comes first, and those without one last."""
    scores = [row["score"] for row in rows]
    keys = [(1, 0.0) if score is None else (0, direction.key(score)) for score in scores]
    ranks = [0] * len(rows)
    for rank, place in enumerate(sorted(range(len(rows)), key=keys.__getitem__)):
        ranks[place] = rank
    return ranks


def _pack(value: Any) -> str:
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode()
