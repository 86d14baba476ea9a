"""What the referee is told of a problem; its JSON text is in `engine.core.Judge`."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Contract = Literal["openevolve", "shinka", "script"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """How to evaluate a program.

    Attributes:
        contract: how the evaluator is called.
        evaluator: absolute path of its file.
        folder: absolute path of the problem's folder; files below it are trusted.
        metric: the one that is the score.
        stages: functions of the evaluator to call in turn, each with the score that a program needs
            to go on, or None; the last one's is not used.
        arguments: further keyword arguments of its ``evaluate``.
        exempt: SHA-256 of the text of a program that goes through all stages, whatever it scores.
        shared: absolute paths of further folders with modules of the evaluator's; trusted too.
        environment: environment variables that the evaluator asks for.
        neighbours: by its name, the text of each module of the folder that programs may import.
        objects: names of the attributes, methods and special methods of the program's objects that
            the evaluator may use; None for all. Where there are none, a program's objects cross as
            numbers, arrays and lists, if they can be made into some.
        is_rehearsal: whether to find out if the evaluator can be split from the program.
        joined_by: what of the evaluator can't be split from the program; empty where nothing is
            known to be.
    """

    contract: Contract
    evaluator: str
    folder: str
    metric: str = "combined_score"
    stages: tuple[tuple[str, float | None], ...] = (("evaluate", None),)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    exempt: str = ""
    shared: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    neighbours: Mapping[str, str] = field(default_factory=dict)
    objects: tuple[str, ...] | None = None
    is_rehearsal: bool = False
    joined_by: str = ""

    def to_json(self) -> str:
        """Return the text that `from_json` reads."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Setup":
        """Return the setup that `to_json` wrote."""
        raw = json.loads(text)
        raw["stages"] = tuple((name, threshold) for name, threshold in raw["stages"])
        raw["objects"] = None if raw["objects"] is None else tuple(raw["objects"])
        raw["shared"] = tuple(raw["shared"])
        return cls(**raw)
