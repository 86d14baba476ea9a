"""An OpenAI-compatible service that writes the programs: requests go out, replies come back.

`Endpoint.submit` never waits: a request is a thread's, which rings when it is over. Whatever goes
wrong, no status but 200, a broken connection, a reply that is none or comes too late, is told as
one line and ends nothing. A request is made once: what the service refuses for now is the chain's
loss.

The task, programs, an idea and an experiment are sent to the service, and the key if there is one;
it goes to no other place, because redirections are not followed. Nothing else is sent anywhere.
"""

import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from queue import SimpleQueue
from typing import Any, Protocol
from urllib.parse import urlsplit

from engine.core import GIVEN_UP, UserError
from engine.settings import AdvisorSettings, EndpointSettings

MOST_BYTES = 16 << 20
"""The longest reply that is read."""
_MOST_MESSAGE = 200  # characters of what a service says that are told
_CHUNK = 1 << 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What a service answered.

    Attributes:
        text: the answer.
        finish_reason: ``stop`` or ``length``; what else a service says counts as ``stop``.
        prompt_tokens: as the service counts them; 0 if it does not say.
        tokens: that it generated, likewise.
        seconds: until the answer was there.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    tokens: int
    seconds: float


class _Stream(Protocol):
    """A response that is being read."""

    def read1(self, n: int = -1) -> bytes:
        """Return what is there, of at most ``n`` bytes; nothing at the end."""


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    """Follows nothing: a service that moved is an error, and the key stays here."""

    def redirect_request(self, *arguments: Any) -> None:
        return None


def key_of(settings: AdvisorSettings) -> str | None:
    """Return the service's key; None where there is none, or no service.

    Raises:
        UserError: the environment does not have it.
    """
    name = settings.endpoint.key_env
    if not settings.enabled or settings.implementer != "endpoint" or name is None:
        return None
    key = os.environ.get(name, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise UserError(
            f"advisor.endpoint.key_env={name}: the environment has no key of that name; export it, "
            "or give null for a service without keys"
        )
    return key


class Endpoint:
    """A service; one thread submits and takes."""

    def __init__(
        self, settings: EndpointSettings, *, key: str | None, notify: Callable[[], object]
    ) -> None:
        """Set up; nothing is sent yet.

        Args:
            settings: the service's, with ``url`` and ``model``.
            key: that it asks for; None for none.
            notify: called, in another thread, when a request is over.
        """
        assert settings.url is not None  # the settings have it where there is a service
        self._settings = settings
        self._url = settings.url.rstrip("/") + "/chat/completions"
        self._headers = {"Content-Type": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        handlers: list[urllib.request.BaseHandler] = [_NoRedirection()]
        if urlsplit(self._url).hostname in ("127.0.0.1", "::1", "localhost"):
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)
        self._notify = notify
        self._free = threading.BoundedSemaphore(settings.at_once)
        self._over: SimpleQueue[tuple[int, Reply | str]] = SimpleQueue()
        self._waited: set[int] = set()

    @property
    def in_flight(self) -> int:
        """Requests whose end `completed` has not told yet, without those that were forgotten."""
        return len(self._waited)

    def submit(
        self,
        ticket: int,
        *,
        messages: Sequence[Mapping[str, str]],
        temperature: float,
        seed: int,
        max_tokens: int,
    ) -> None:
        """Send a request as soon as there is room for it.

        Args:
            ticket: names the request.
            messages: of the conversation.
            temperature: that the service is to sample at.
            seed: likewise; it may ignore it.
            max_tokens: of the longest answer.
        """
        body = {
            "model": self._settings.model,
            "messages": list(messages),
            "temperature": temperature,
            "seed": seed & 0x7FFFFFFF,  # some services take no larger one
            "max_tokens": max_tokens,
        }
        self._waited.add(ticket)
        # A daemon: a run that ends does not wait for a service.
        work = threading.Thread(
            target=self._work, args=(ticket, body), name="implementer", daemon=True
        )
        work.start()

    def completed(self) -> list[tuple[int, Reply | str]]:
        """Return the requests that are over, each with its reply, or why there is none."""
        over = [self._over.get() for _ in range(self._over.qsize())]
        over = [each for each in over if each[0] in self._waited]
        self._waited.difference_update(ticket for ticket, _ in over)
        return over

    def forget(self, ticket: int) -> None:
        """Wait for a request no longer; the service may still work on it, if it was sent by now."""
        self._waited.discard(ticket)

    def _work(self, ticket: int, body: Mapping[str, object]) -> None:
        with self._free:
            if ticket not in self._waited:  # forgotten while there was no room
                return
            try:
                result: Reply | str = self._ask(body)
            except urllib.error.HTTPError as error:
                result = f"status {error.code}: {_said(error)}"
            except (OSError, HTTPException, ValueError) as error:
                reason = getattr(error, "reason", None) or error
                result = _line(f"{type(error).__name__}: {reason}")
        self._over.put((ticket, result))
        self._notify()

    def _ask(self, body: Mapping[str, object]) -> Reply:
        began = time.monotonic()
        seconds = self._settings.seconds
        request = urllib.request.Request(
            self._url, data=json.dumps(body).encode(), headers=self._headers, method="POST"
        )
        with self._opener.open(request, timeout=seconds) as response:
            data = _read(response, until=began + seconds)
        return _reply(data, seconds=time.monotonic() - began)


def _read(response: _Stream, *, until: float) -> bytes:
    """Return the whole of a response.

    Raises:
        ValueError: it is longer than `MOST_BYTES`.
        TimeoutError: it isn't there in time; a service may send a byte now and then for ever.
    """
    data = bytearray()
    while chunk := response.read1(_CHUNK):
        data += chunk
        if len(data) > MOST_BYTES:
            raise ValueError(f"the reply is longer than {MOST_BYTES >> 20} MiB")
        if time.monotonic() > until:
            raise TimeoutError("the reply took too long")
    return bytes(data)


def _reply(data: bytes, *, seconds: float) -> Reply:
    """Read a reply.

    Raises:
        ValueError: it is none.
    """
    try:
        whole = json.loads(data)
        choice = whole["choices"][0]
        text, reason = choice["message"]["content"], choice.get("finish_reason")
        usage = whole.get("usage")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("the reply is no chat completion") from error
    if not isinstance(text, str):
        raise ValueError("the reply has no text")
    if reason == GIVEN_UP:
        raise ValueError("the reply ended with an error of the service's own")
    # What JSON may hold and no file takes.
    text = text.encode("utf-8", "replace").decode("utf-8")
    return Reply(
        text=text,
        finish_reason="length" if reason == "length" else "stop",
        prompt_tokens=_count(usage, "prompt_tokens"),
        tokens=_count(usage, "completion_tokens"),
        seconds=seconds,
    )


def _count(usage: object, name: str) -> int:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if type(value) is int and 0 <= value < 1 << 31 else 0


def _said(error: urllib.error.HTTPError) -> str:
    try:
        text = error.read(4 * _MOST_MESSAGE).decode("utf-8", "replace")
    except (OSError, HTTPException, ValueError):
        text = ""
    return _line(text or str(error.reason))


def _line(text: str) -> str:
    text = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(text.split())[:_MOST_MESSAGE]
