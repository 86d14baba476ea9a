"""The form of events in a log: a JSON object for each.

Covers: writing an event's fields and reading them back, to the last digit. Does not cover where
the texts lie: ``log.py``.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import cast, get_args

import msgspec

from engine.core import Advice, Call, Child, Event, Verdict

_KINDS: Mapping[str, type[Event]] = {kind.KIND: kind for kind in get_args(Event)}
# A verdict's metrics may be numbers as text.
_DECODERS: Mapping[str, msgspec.json.Decoder[Event]] = {
    name: msgspec.json.Decoder(kind, strict=kind is not Verdict) for name, kind in _KINDS.items()
}


def encode(event: Event) -> str:
    """Return the event's fields as a JSON object; numbers keep all their digits.

    A metric that isn't finite becomes text, because JSON has no such numbers.

    Raises:
        ValueError: a score, a log-probability or a temperature isn't finite.
    """
    if isinstance(event, Verdict):
        event = _with_metrics_as_text(event)
    for numbers in _sequences(event):
        if not all(map(math.isfinite, numbers)):  # null would stand there, which is never read back
            raise ValueError(f"JSON has no NaN or infinity, and the {event.KIND} has one")
    return msgspec.json.encode(event).decode()


def decode(kind: str, body: str) -> Event:
    """Return the event written by `encode`.

    Raises:
        KeyError, ValueError: there is no such kind of event, or it has other fields.
    """
    event = _DECODERS[kind].decode(body)
    # msgspec passes over what a body lacks, and what it has besides. Mostly it is as `encode` wrote
    # it, which takes a third of the time to see.
    if encode(event) != body and not _has_its_fields(event, body):
        raise ValueError(f"a body of kind {kind!r} lacks fields, or has others")
    return event


def _has_its_fields(event: Event, body: str) -> bool:
    return _names(msgspec.json.decode(body)) == _names(msgspec.to_builtins(event))


def _names(value: object) -> object:
    """Return the names of an object's fields, and of those of the objects in it."""
    return {name: _names(v) for name, v in value.items()} if isinstance(value, dict) else None


def _sequences(event: Event) -> Iterable[Sequence[float]]:
    """Return an event's numbers that a model or a sampler gave, where it may have many."""
    match event:
        case Child():
            return (event.logprobs,)
        case Call():
            return (event.temperatures,)
        case Advice():
            return (each.logprobs for each in event.consultations)
        case _:
            return ()


def _with_metrics_as_text(verdict: Verdict) -> Verdict:
    """Replace the metrics that are not finite by their names: ``inf``, ``-inf`` and ``nan``."""
    evaluation = verdict.evaluation
    if evaluation.score is not None and not math.isfinite(evaluation.score):
        raise ValueError(f"JSON has no number for the score {evaluation.score}")
    odd = {name: str(each) for name, each in evaluation.metrics.items() if not math.isfinite(each)}
    if not odd:
        return verdict
    metrics = cast(Mapping[str, float], {**evaluation.metrics, **odd})
    return dataclasses.replace(verdict, evaluation=dataclasses.replace(evaluation, metrics=metrics))
