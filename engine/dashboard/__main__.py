"""``python -m engine.dashboard FOLDER``: shows the runs of a folder in a browser while they go on.

    python -m engine.dashboard runs/
    python -m engine.dashboard runs/ port=9000

Prints an address with a token: whoever opens it may pause, resume and stop runs and leave hints.
Without the token the page only shows. It is served to this machine alone (127.0.0.1, port 8642);
from another one: ``ssh -L 8642:127.0.0.1:8642 MACHINE``. Ctrl-C ends it; runs go on.
Exit codes: 0, or 2 for bad input.
"""

import secrets
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from engine.arguments import Arguments, execute
from engine.core import UserError
from engine.dashboard import WatchedRuns, make_app
from engine.dashboard.app import GRACE_SECONDS
from engine.dashboard.guard import ADDRESS, PromptProtocol

_PORT = 8642
_LARGEST = 65_535


def main(arguments: Sequence[str]) -> int:
    """Serve the page until it is interrupted; return the exit code."""
    try:
        return execute(_serve, arguments, keys=("port",), usage=__doc__ or "")
    except KeyboardInterrupt:
        return 0


def _serve(arguments: Arguments) -> int:
    if len(arguments.rest) != 1:
        raise UserError("give one folder that runs lie in, such as runs/")
    runs = WatchedRuns(Path(arguments.rest[0]))
    port = arguments.number("port", _PORT)
    token = secrets.token_urlsafe(24)
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(runs, token=token),
            http=PromptProtocol,
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=GRACE_SECONDS + 1,
        )
    )
    with _listening(port) as listener:
        address = f"http://{ADDRESS}:{port}/"
        print(f"{runs.folder}: {address}#token={token}", flush=True)
        print(f"Only to look: {address}   Ctrl-C ends the page; runs go on.", flush=True)
        server.run(sockets=[listener])
    return 0


def _listening(port: int) -> socket.socket:
    """Return a socket at which this machine alone is listened to.

    Raises:
        UserError: the port is not free, or none.
    """
    if port > _LARGEST:
        raise UserError(f"port is {port}; it must be at most {_LARGEST}")
    try:
        return socket.create_server((ADDRESS, port))
    except OSError as error:
        raise UserError(
            f"port {port} can't be listened at: {error.strerror}; give another one with port="
        ) from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
