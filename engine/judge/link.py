"""Calls between two processes over a `Channel`, either way, and the objects that they pass.

Both sides make requests and answer the other's, nested to any depth: while an evaluator waits for
what a program returns, the program may call a function that the evaluator passed to it. A request
is ``["ask", number, operation, values]``, its answer ``["done", number, value]`` or ``["raised",
number, [type, message, line, traceback]]``. An answer to a request that was given up is dropped.

What has no plain form (`engine.judge.values`) crosses as a reference to an object of the sender's,
``{"x": {...}}``, and comes home as ``{"w": number}``: so the same object comes back. The receiver
has a stand-in of it (`engine.judge.proxies`). A member of an enumeration whose module both sides
import crosses by its names, ``{"e": [module, type, name]}``.

Does not cover what a side lets the other do with its objects: `Manners`.
"""

import itertools
import os
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, Protocol

from engine.judge.decoding import decode
from engine.judge.encoding import encode
from engine.judge.frames import Channel, Closed
from engine.judge.names import Names
from engine.judge.proxies import RemoteType, number_of, raised, stand_in, stand_in_type
from engine.judge.values import WireError

_BY_OWNER = ("method", "special")
_BY_NAME = (*_BY_OWNER, "attribute")
MOST_TYPES = 10_000
"""Types of the other side that have stand-ins."""


class Manners(Protocol):
    """What one side tells of its objects, and does when the other asks."""

    local_attributes: bool
    """Whether a stand-in's attributes are a copy, set here and read without asking."""

    def dunders(self, kind: type) -> list[str]:
        """Return the special methods of a type that the other side may call."""

    def attributes(self, value: object) -> Mapping[str, object] | None:
        """Return the attributes that go along with an object; None to have each asked for.

        Raises:
            WireError: the object must not cross.
        """

    def plain(self, value: object) -> object:
        """Return what to send in place of an object: itself, or the numbers that it stands for."""

    def shares(self, kind: type) -> bool:
        """Return whether both sides have a type, each by an import of its own."""

    def member(self, module: str, kind: str, name: str) -> Enum:
        """Return a member of an enumeration that both sides have.

        Raises:
            WireError: this side has none.
        """

    def perform(self, operation: str, *values: Any) -> Any:
        """Do what the other side asks, and return the answer.

        Raises:
            Exception: whatever happened; its type and text go to the other side.
        """

    def describe(self, error: BaseException) -> list[Any]:
        """Return type name, message, line (or None) and traceback of what `perform` raised."""


class Link:
    """One side of the connection."""

    def __init__(
        self,
        channel: Channel,
        manners: Manners,
        *,
        guard: AbstractContextManager[Any] | None = None,
        allowed: Collection[str] | None = None,
    ) -> None:
        """Begin with no object known.

        Args:
            channel: to the other side.
            manners: this side's.
            guard: held during each request, besides a lock of this process's threads; for
                processes that share the channel.
            allowed: names of what may be used of the other side's objects; None for all.
        """
        self._channel = channel
        self._manners = manners
        self._lock = threading.RLock()
        self._guard = guard
        self._numbers = itertools.count(1)
        self._process = os.getpid()
        self._own: dict[int, object] = {}
        self._tokens: dict[int, int] = {}  # by id() of the objects in `_own`
        self._exporting: set[int] = set()
        self._others: dict[int, Any] = {}
        self._types: dict[int, RemoteType] = {}
        self._allowed = None if allowed is None else frozenset(allowed)
        self.used: Names | None = None
        """Takes the names of what is used of the other side's objects."""
        self._read: dict[tuple[int, str], Any] = {}  # attributes, until the next call
        self.lost: str | None = None
        """Why the other side can't be talked to any more; None while it can."""
        self.first_raised = ""
        """What the other side's code raised first."""

    @property
    def local_attributes(self) -> bool:
        """Whether stand-ins here have copies of their objects' attributes."""
        return self._manners.local_attributes

    def allows(self, name: str) -> bool:
        """Return whether something may be used of the other side's objects."""
        return self._allowed is None or name in self._allowed

    def use(self, name: str, *, of: str) -> None:
        """Note that something is used of the other side's objects, before it is.

        Args:
            name: of what is used.
            of: name of the object's type.

        Raises:
            AttributeError: it may not be.
        """
        if not self.allows(name):
            raise AttributeError(f"the program's {of} object has no {name} to be used")
        if self.used is not None:
            self.used.add(name)

    # Asking.

    def ask(self, operation: str, *values: object) -> Any:
        """Have the other side do something, and return its answer.

        Raises:
            Raised: the other side's code raised.
            WireError: a value can't cross.
            Closed: the other side is gone, or sent what is no frame.
        """
        if operation in _BY_NAME:
            self.use(str(values[1]), of=type(values[0]).__name__)
        if operation != "attribute":
            self._read.clear()
        with self._lock:
            if self._guard is None:
                return self._ask(operation, values)
            with self._guard:
                return self._ask(operation, values)

    def attribute(self, owner: Any, number: int, name: str) -> Any:
        """Return an attribute of the other side's object; the same one until the next call."""
        if (number, name) not in self._read:
            is_method, value = self.ask("attribute", owner, name)
            if is_method is True:
                return None
            self._read[number, name] = [value]
        return self._read[number, name]

    def _ask(self, operation: str, values: tuple[object, ...]) -> Any:
        number = next(self._numbers)
        if os.getpid() != self._process:
            # All that were forked count on from the same number, and one may get what comes late
            # to another that was killed.
            number |= os.getpid() << 32
        self._send("ask", number, list(values), operation)
        while True:
            kind, answered, body, blobs = self._receive()
            if kind == "ask":
                self._answer(answered, body, blobs)
            elif answered == number:
                answer = self._answered(body, blobs)
                if kind == "raised":
                    error = raised(answer)
                    self.first_raised = self.first_raised or f"{type(error).__name__}: {error}"
                    raise error
                is_told = self.local_attributes and operation in _BY_OWNER
                return answer[1] if is_told else answer

    def _answered(self, body: Any, blobs: list[memoryview]) -> Any:
        try:
            return self._decoded(body, blobs)
        except WireError as error:  # it sends what none of ours does
            self._lose(error)
            raise

    def _tells_owner(self, operation: str) -> bool:
        return not self.local_attributes and operation in _BY_OWNER

    # Answering.

    def serve(self) -> None:
        """Answer requests until the other side is gone."""
        try:
            while True:
                kind, number, body, blobs = self._receive()
                if kind == "ask":
                    self._answer(number, body, blobs)
        except Closed:
            return

    def _answer(self, number: int, body: Any, blobs: list[memoryview]) -> None:
        try:
            if type(body) is not list or len(body) != 2 or type(body[0]) is not str:
                raise WireError("a request has no operation")
            operation, values = body[0], self._decoded(body[1], blobs)
            if type(values) is not list:
                raise WireError("a request has no values")
            answer = self._manners.perform(operation, *values)
            if self._tells_owner(operation):  # whose attributes may be others now
                answer = [values[0], answer]
            self._send("done", number, answer)
        except Closed:
            raise
        except BaseException as error:  # SystemExit too is the other side's to know
            self._send("raised", number, self._manners.describe(error))

    # Frames.

    def _send(self, kind: str, number: int, value: object, operation: str = "") -> None:
        self._exporting.clear()
        tree, blobs = encode(value, self)
        body = [operation, tree] if kind == "ask" else tree
        try:
            self._channel.send([kind, number, body], blobs)
        except Closed as error:
            raise self._lose(error) from error

    def _receive(self) -> tuple[str, int, Any, list[memoryview]]:
        try:
            frame, blobs = self._channel.receive()
            if type(frame) is not list or len(frame) != 3:
                raise WireError("a frame is no message")
            kind, number, body = frame
            if kind not in ("ask", "done", "raised") or type(number) is not int:
                raise WireError("a frame is no message")
        except (Closed, WireError, MemoryError) as error:
            raise self._lose(error) from error
        return kind, number, body, blobs

    def _decoded(self, tree: Any, blobs: list[memoryview]) -> Any:
        try:
            return decode(tree, blobs, self)
        except (MemoryError, RecursionError) as error:
            raise WireError(f"a value is too large: {type(error).__name__}") from error

    def _lose(self, error: BaseException) -> Closed:
        if self.lost is None:
            self.lost = str(error) or type(error).__name__
        return error if isinstance(error, Closed) else Closed(str(error))

    # Objects (`engine.judge.values.References`).

    def export(self, value: object, encode: Callable[[object], Any]) -> Any:
        """Return the reference to an object: this side's own, or the other's coming home."""
        kind = value if isinstance(value, type) else type(value)
        if isinstance(value, Enum) and value.name is not None and self._manners.shares(kind):
            return {"e": [kind.__module__, kind.__name__, value.name]}
        own = getattr(value, "_brood_remote", value)  # of a function that stands for one
        home = number_of(own, self)
        if home is not None:
            return {"w": home}
        plain = self._manners.plain(value)
        if plain is not value:
            return encode(plain)
        attributes = self._manners.attributes(value)
        number = self._number(value)
        if number in self._exporting:
            return {"x": {"id": number}}
        self._exporting.add(number)
        reference: dict[str, Any] = {
            "id": number,
            "type": [self._number(kind), kind.__name__, self._manners.dunders(kind)],
        }
        if attributes is not None:
            reference["has"] = {name: encode(each) for name, each in attributes.items()}
        return {"x": reference}

    def resolve(self, tag: str, payload: Any, decode: Callable[[Any], Any]) -> Any:
        """Return this side's own object, or the stand-in of the other's."""
        if tag == "w":
            if type(payload) is not int or payload not in self._own:
                raise WireError("a reference to an object that never crossed")
            return self._own[payload]
        if tag == "e":
            module, kind, name = payload
            if not all(type(each) is str for each in payload):
                raise WireError("a member of an enumeration has no names")
            return self._manners.member(module, kind, name)
        number = payload["id"]
        if type(number) is not int:
            raise WireError("a reference has no number")
        if "type" in payload:
            self._meet(number, *payload["type"])
        found = self._others[number]
        if "has" in payload and self.local_attributes:
            for name, tree in dict.items(payload["has"]):
                if not isinstance(found, type):
                    found.__dict__[name] = decode(tree)
        return found

    def _number(self, value: object) -> int:
        number = self._tokens.get(id(value))
        if number is None:
            number = len(self._own) + 1
            self._own[number] = value  # which keeps it alive, and so its id()
            self._tokens[id(value)] = number
        return number

    def _meet(self, number: int, kind: Any, name: Any, dunders: Any) -> None:
        """Make the stand-in of an object of the other side, if there is none."""
        if number in self._others:
            return
        if type(kind) is not int or type(name) is not str or type(dunders) is not list:
            raise WireError("a reference has no type")
        if kind not in self._types:
            if len(self._types) >= MOST_TYPES:
                raise WireError(f"more than {MOST_TYPES} types")
            self._types[kind] = stand_in_type(self, kind, name, dunders)
            self._others[kind] = self._types[kind]
        if number != kind:
            self._others[number] = stand_in(self._types[kind], self, number)
