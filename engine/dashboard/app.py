"""The live page's routes: pages, what they are told while they are open, what is asked of a run."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from importlib.resources import files
from typing import Any
from urllib.parse import quote

import anyio
from jinja2 import PackageLoader
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from engine.cluster.places import is_island
from engine.core import UserError
from engine.dashboard.guard import MIDDLEWARE, has_token
from engine.dashboard.run import WatchedRun
from engine.dashboard.runs import WatchedRuns
from engine.dashboard.snapshot import Snapshot, shown_row
from engine.report.page.assets import asset, plain, templates, vega
from engine.steering import MOST_HINT, decoded, leave

_MOST_BYTES = 64_000  # of what is asked of a run
GRACE_SECONDS = 2
"""That whoever listens is given when the server ends."""
_FOLDER = "pages"
_SCRIPT, _STYLE = "text/javascript", "text/css"


def _file(name: str) -> str:
    return files(__package__).joinpath(_FOLDER, name).read_text(encoding="utf-8")


_ASSETS: Mapping[str, tuple[str, Callable[[], str]]] = {
    "vega.js": (_SCRIPT, vega),
    "drawing.js": (_SCRIPT, partial(asset, "drawing.js")),
    "style.css": (_STYLE, partial(asset, "style.css")),
    **{name: (_SCRIPT, partial(_file, name)) for name in ("live.js", "runs.js", "run.js")},
    "live.css": (_STYLE, partial(_file, "live.css")),
}
"""By name: the type, and what returns the text."""


def make_app(runs: WatchedRuns, *, token: str) -> Starlette:
    """Return the application.

    Args:
        runs: that it shows.
        token: whoever sends it may steer them.
    """
    pages = _Pages(runs, token)
    return Starlette(
        middleware=[*MIDDLEWARE],
        exception_handlers={HTTPException: _told, UserError: _told},
        routes=[
            Route("/", pages.all_runs),
            Route("/events", pages.follow_all),
            Route("/runs/{name:path}", pages.one_run),
            Route("/follow/{name:path}", pages.follow_one),
            Route("/programs/{name:path}", pages.programs),
            Route("/program/{name:path}", pages.program),
            Route("/steer/{name:path}", pages.steer, methods=["POST"]),
            Route("/assets/{name}", _asset),
        ],
    )


class _Pages:
    """The routes; reading and drawing are done in threads, so that no browser waits for another."""

    def __init__(self, runs: WatchedRuns, token: str) -> None:
        self._runs = runs
        self._token = token
        self._templates = templates(PackageLoader(__package__, _FOLDER))

    async def all_runs(self, request: Request) -> Response:
        """The table of all runs."""
        return self._page("runs.html", folder=str(self._runs.folder))

    async def one_run(self, request: Request) -> Response:
        """One run."""
        run = await self._run(request)
        return self._page("run.html", name=run.name, most_hint=MOST_HINT)

    async def follow_all(self, request: Request) -> Response:
        """Tell the table's rows, and again whenever one has changed."""
        return _stream(self._rows)

    async def follow_one(self, request: Request) -> Response:
        """Tell a run's row and its figures, and again those that have changed."""
        return _stream(partial(self._news, (await self._run(request)).name))

    async def programs(self, request: Request) -> Response:
        """A page of the list of programs."""
        snapshot = await self._snapshot(request)
        given = request.query_params
        page = given.get("page", "0")[:9]
        found = await run_in_threadpool(
            snapshot.page,
            order=given.get("order", "best"),
            outcome=given.get("outcome", ""),
            sought=given.get("words", "").lower(),
            page=int(page) if page.isdecimal() else 0,
        )
        return JSONResponse(found)

    async def program(self, request: Request) -> Response:
        """One program with its text."""
        snapshot = await self._snapshot(request)
        row = snapshot.row(request.query_params.get("id", ""))
        if row is None:
            raise HTTPException(404, "there is no such program")
        whole = await run_in_threadpool(snapshot.run.program, row)
        return JSONResponse({**shown_row(row), "text": whole["text"]})

    async def steer(self, request: Request) -> Response:
        """Ask something of a run."""
        if not has_token(request, self._token):
            raise HTTPException(403, "open the address with the token that the terminal shows")
        asked = decoded(await _body(request))
        run = await self._run(request)
        if run.state not in ("running", "paused"):
            raise HTTPException(409, "the run is not running; go on with brood resume")
        if asked.kind == "stop" and is_island(run.folder):
            raise HTTPException(
                409, "an island alone would go on elsewhere; stop the run where it was started"
            )
        await run_in_threadpool(leave, run.folder, asked)
        return JSONResponse({}, 202)

    async def _rows(self, end: anyio.Event) -> AsyncIterator[dict[str, str]]:
        last = None
        while not end.is_set():
            found = await run_in_threadpool(self._runs.refresh)
            told = {"runs": [_row(run) for run in found.values()], "more": self._runs.is_cut}
            if told != last:
                yield {"event": "runs", "data": _json({**told, "seconds": self._runs.seconds})}
            last = told
            await _pause(end, self._runs.pause)

    async def _news(self, name: str, end: anyio.Event) -> AsyncIterator[dict[str, str]]:
        last, drawn = None, dict[str, str]()
        while not end.is_set():
            run = (await run_in_threadpool(self._runs.refresh, first=name)).get(name)
            if run is None:
                yield {"event": "gone", "data": ""}
                return
            told = {**_row(run), "hint": plain(run.hint)}
            if told != last:
                yield {"event": "facts", "data": _json(told)}
            last = told
            snapshot = await run_in_threadpool(self._runs.snapshot, run)
            if snapshot is not None:
                digests = {each: digest for each, (_, digest) in snapshot.figures.items()}
                if digests != drawn:
                    yield {"event": "figures", "data": _changed(snapshot, drawn)}
                drawn = digests
            await _pause(end, self._runs.pause)

    async def _run(self, request: Request) -> WatchedRun:
        run = (await run_in_threadpool(self._runs.refresh)).get(request.path_params["name"])
        if run is None:
            raise HTTPException(404, "there is no such run")
        return run

    async def _snapshot(self, request: Request) -> Snapshot:
        snapshot = await run_in_threadpool(self._runs.snapshot, await self._run(request))
        if snapshot is None:
            raise HTTPException(404, "nothing of this run was read yet")
        return snapshot

    def _page(self, template: str, **values: object) -> Response:
        return HTMLResponse(self._templates.get_template(template).render(**values))


def _stream(tell: Callable[[anyio.Event], AsyncIterator[dict[str, str]]]) -> Response:
    """Return an answer that goes on until the browser leaves or the server ends."""
    end = anyio.Event()
    return EventSourceResponse(
        tell(end), shutdown_event=end, shutdown_grace_period=GRACE_SECONDS, ping=15
    )


async def _pause(end: anyio.Event, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await end.wait()


async def _asset(request: Request) -> Response:
    found = _ASSETS.get(request.path_params["name"])
    if found is None:
        raise HTTPException(404, "there is no such file")
    return Response(found[1](), media_type=found[0])


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise HTTPException(413, f"a request has at most {_MOST_BYTES:,} bytes")
    return body


async def _told(request: Request, error: Exception) -> Response:
    """Tell what was wrong."""
    if isinstance(error, HTTPException):
        return JSONResponse({"error": error.detail}, error.status_code)
    return JSONResponse({"error": str(error)}, 400)


def _changed(snapshot: Snapshot, drawn: Mapping[str, str]) -> str:
    """Return the order of the figures, and those that differ from what was drawn."""
    fresh = [text for name, (text, digest) in snapshot.figures.items() if drawn.get(name) != digest]
    order, seconds = json.dumps([*snapshot.figures]), json.dumps(snapshot.seconds)
    return f'{{"seconds":{seconds},"order":{order},"figures":[{",".join(fresh)}]}}'


def _row(run: WatchedRun) -> dict[str, Any]:
    """Return a run's row as JSON has it, and where its page is: whole, however long."""
    return {**plain(run.facts()), "href": f"/runs/{quote(run.name)}"}


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
