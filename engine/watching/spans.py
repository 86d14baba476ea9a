"""OpenTelemetry spans of a run: a trace for each iteration of an island.

    iteration 7                      from the call's event to the last verdict on its children
      call                           until its last child was recorded
        child 7.0                    until it was recorded; siblings share their engine's steps
          evaluation                 the program's own run, up to when its verdict was recorded
        child 7.1

They are made of the events, so times are those of the transactions that brought these to disk, some
milliseconds late, and an iteration that a session does not finish has no span of its own there.
Programs that fill idle evaluators have none: the timeline has these.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.core import Call, Child, Event, Verdict
from engine.store import RunHistory

Span = dict[str, Any]
"""As OTLP has it in JSON (opentelemetry-proto 1.x, ``trace.proto``)."""
_INTERNAL = 1  # SpanKind
_ERROR = 2  # StatusCode


@dataclass(kw_only=True)
class _Open:
    """An iteration that goes on."""

    call: Call
    began: int
    missing: int
    awaited: set[str] = field(default_factory=set)


class Spans:
    """A fold of the events of one session of a run."""

    def __init__(self, *, run: str, session: int, history: RunHistory, now: int) -> None:
        """Begin with the iterations that an earlier session did not finish.

        Args:
            run: its name.
            session: its number.
            history: what the log adds up to.
            now: in ns since 1970, as all times here.
        """
        self._name = f"{run}\0{session}"
        self._open: dict[int, _Open] = {}
        for call in history.calls.values():
            one = _Open(call=call, began=now, missing=len(history.missing(call)))
            one.awaited = {each for each in history.pending if _iteration(each) == call.iteration}
            if one.missing or one.awaited:
                self._open[call.iteration] = one

    def take(self, events: Sequence[Event], *, now: int) -> list[Span]:
        """Take in events that came to disk now; return the spans that are over."""
        return [span for event in events for span in self._taken(event, now)]

    def _taken(self, event: Event, now: int) -> Iterator[Span]:
        if isinstance(event, Call):
            self._open[event.iteration] = _Open(call=event, began=now, missing=event.k)
        elif isinstance(event, Child) and event.iteration in self._open:
            yield from self._child(event, self._open[event.iteration], now)
        elif isinstance(event, Verdict) and _iteration(event.candidate) in self._open:
            yield from self._verdict(event, self._open[_iteration(event.candidate)], now)

    def _child(self, child: Child, one: _Open, now: int) -> Iterator[Span]:
        one.missing -= 1
        if child.refusal is None:
            one.awaited.add(child.id)
        facts = {
            "brood.child": child.id,
            "brood.parent": child.parent,
            "brood.operator": child.operator,
            "brood.refusal": child.refusal,
            "gen_ai.usage.input_tokens": child.prompt_tokens,
            "gen_ai.usage.output_tokens": child.generated_tokens,
            "gen_ai.response.finish_reasons": child.finish_reason,
            "brood.cached_prompt_tokens": child.cached_prompt_tokens,
        }
        yield self._span(one, f"child {child.id}", "child", child.id, "call", one.began, now, facts)
        if not one.missing:
            facts = {"gen_ai.usage.input_tokens": one.call.prompt_tokens, "brood.k": one.call.k}
            yield self._span(one, "call", "call", "", "iteration", one.began, now, facts)
        yield from self._end(one, now)

    def _verdict(self, verdict: Verdict, one: _Open, now: int) -> Iterator[Span]:
        one.awaited.discard(verdict.candidate)
        found = verdict.evaluation
        facts = {
            "brood.candidate": verdict.candidate,
            "brood.score": found.score,
            "brood.failure": found.failure,
        }
        began = now - int(found.seconds * 1e9)
        name = f"child:{verdict.candidate}"
        span = self._span(
            one, "evaluation", "evaluation", verdict.candidate, name, began, now, facts
        )
        if found.failure is not None:
            span["status"] = {"code": _ERROR, "message": _sound(found.message)}
        yield span
        yield from self._end(one, now)

    def _end(self, one: _Open, now: int) -> Iterator[Span]:
        if one.missing or one.awaited:
            return
        call = one.call
        del self._open[call.iteration]
        facts = {
            "brood.iteration": call.iteration,
            "brood.island": call.island,
            "brood.parent": call.parent,
            "brood.rule": call.rule,
            "brood.operator": call.operator,
            "brood.k": call.k,
        }
        name = f"iteration {call.iteration}"
        yield self._span(one, name, "iteration", "", None, one.began, now, facts)

    def _span(
        self,
        one: _Open,
        name: str,
        kind: str,
        which: str,
        parent: str | None,
        began: int,
        ended: int,
        facts: Mapping[str, Any],
    ) -> Span:
        iteration = one.call.iteration
        span: Span = {
            "traceId": self._id(iteration, "trace", size=16),
            "spanId": self._id(iteration, f"{kind}:{which}", size=8),
            "name": name,
            "kind": _INTERNAL,
            "startTimeUnixNano": str(min(began, ended)),
            "endTimeUnixNano": str(ended),
            "attributes": attributes(facts),
        }
        if parent is not None:
            parent = parent if ":" in parent else f"{parent}:"
            span["parentSpanId"] = self._id(iteration, parent, size=8)
        return span

    def _id(self, iteration: int, what: str, *, size: int) -> str:
        """Return an id that is the same whenever the same session is told of."""
        name = f"{self._name}\0{iteration}\0{what}".encode(errors="replace")
        return hashlib.blake2b(name, digest_size=size).hexdigest()


def attributes(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return attributes as OTLP has them in JSON, without those that are None."""
    return [
        {"key": key, "value": _value(value)} for key, value in facts.items() if value is not None
    ]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": _sound(str(value))}


def _sound(text: str) -> str:
    """Return a text that UTF-8 can hold."""
    return text.encode(errors="replace").decode()


def _iteration(candidate: str) -> int:
    """Return the iteration of a child's id; -1 for another candidate's."""
    first, dot, last = candidate.partition(".")
    return int(first) if dot and first.isdecimal() and last.isdecimal() else -1
