"""A real HTTP server on the loopback that stands for an OpenAI-compatible service."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Service:
    """What the server was sent, and where it is.

    Attributes:
        url: as ``advisor.endpoint.url``.
        bodies: of the requests.
        headers: of the requests, in lower case.
        paths: that were asked for.
    """

    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


Answer = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


def send(handler: BaseHTTPRequestHandler, body: bytes, *, status: int = 200, **more: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    for name, value in more.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def completion(text: str, *, reason: str = "stop") -> bytes:
    """Return the body of a chat completion of 7 prompt tokens and 5 others."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    return json.dumps({"choices": [{**choice, "finish_reason": reason}], "usage": usage}).encode()


@contextmanager
def serving(answer: Answer) -> Iterator[Service]:
    """Serve as long as the block lasts; ``answer`` answers each request."""
    service, lock = Service(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            service.paths.append(self.path)
            send(self, b"", status=405)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                service.bodies.append(body)
                service.paths.append(self.path)
                service.headers.append({k.lower(): v for k, v in self.headers.items()})
            with contextlib.suppress(OSError):  # who asked is gone
                answer(self, body)

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    service.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
