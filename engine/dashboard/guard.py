"""Who may do what on the live page: hosts, headers, the token.

The page is for the machine that it runs on. A page of somebody else's that is open in the same
browser may send requests here, but reads no answer (no header allows it), has no name that leads
here (the host's name is checked, so a name that is made to point here gains nothing), and can ask
nothing of a run: that needs a header with the token, which no address and no form has. A
connection at which nothing is asked is ended, or slow ones would use up the descriptors.
"""

import asyncio
import secrets

from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

ADDRESS = "127.0.0.1"
"""The only one that the page is served on."""
SECONDS_TO_ASK = 5.0
"""That a connection may go on without a whole request; twice that at most."""
TOKEN = "x-brood-token"
"""Header that holds the token."""
_HOSTS = (ADDRESS, "localhost")
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; connect-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Headers:
    """Sets the headers of every answer: nothing is loaded from elsewhere, framed or kept."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class PromptProtocol(H11Protocol):
    """HTTP as uvicorn has it, but a connection at which nothing is asked is ended.

    uvicorn ends one after an answer, as long as nothing comes; not one whose next request, or
    first, comes a byte at a time.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look."""
        super().connection_made(transport)
        self._last: object = self.cycle  # the request at the last look
        self._look = self.loop.call_later(SECONDS_TO_ASK, self._end_or_look_on)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no longer."""
        self._look.cancel()
        super().connection_lost(exc)

    def _end_or_look_on(self) -> None:
        is_answered = self.cycle is None or self.cycle.response_complete
        if is_answered and self._last is self.cycle:
            self.transport.abort()
            return
        self._last = self.cycle if is_answered else self  # which no request is
        self._look = self.loop.call_later(SECONDS_TO_ASK, self._end_or_look_on)


MIDDLEWARE = (
    Middleware(Headers),
    Middleware(TrustedHostMiddleware, allowed_hosts=[*_HOSTS], www_redirect=False),
)


def has_token(request: Request, token: str) -> bool:
    """Whether a request holds the token; takes as long whatever it holds."""
    given = request.headers.get(TOKEN, "")
    return secrets.compare_digest(given.encode(), token.encode())
