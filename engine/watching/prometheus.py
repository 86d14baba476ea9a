"""A run's figures for a Prometheus on this machine.

Covers: the figures, under names as Prometheus has them; serving them on the loopback address alone.
They are read off the run's history when somebody asks, so a run that nobody scrapes pays only for
the count of verdicts. Totals count all sessions of a run.

The server is not that of ``prometheus_client``, which lets any page of a browser read it.
"""

import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

import engine
from engine.budget import Account
from engine.core import INITIAL, Event, UserError, Verdict
from engine.settings import RunSettings
from engine.store import RunHistory
from engine.watching.local import HOST, is_local, log

_TIMEOUT = 10.0  # seconds that a client may take for its request


class Figures(Collector):
    """What is known of a run, as metrics."""

    def __init__(self, settings: RunSettings, *, run: str, history: RunHistory) -> None:
        """Begin with what the run's log holds already."""
        self._history = history
        self._account = Account(settings.budget, history)
        self._info = {
            "run": run,
            "problem": settings.problem.rpartition("/")[2],
            "model": settings.model.name,
            "version": engine.__version__,
        }
        self._outcomes: Counter[tuple[str, str]] = Counter()
        self.take([*history.verdicts.values()])

    def take(self, events: Sequence[Event]) -> None:
        """Take in events that are on disk."""
        for event in events:
            if isinstance(event, Verdict):
                outcome = event.evaluation.failure or "valid"
                self._outcomes[self._history.made_by(event.candidate), str(outcome)] += 1

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they stand; any thread may ask."""
        history = self._history
        info = GaugeMetricFamily("brood_run_info", "What is run: always 1.", labels=[*self._info])
        info.add_metric([*self._info.values()], 1)
        yield info
        for name, help_text, value in (
            ("candidates", "Children of the model that were evaluated.", history.evaluated),
            ("valid_candidates", "Those of them with a score.", history.valid),
            ("screened_candidates", "Those that a cheap stage screened out.", history.screened),
            ("children", "Children that the model generated.", len(history.children)),
            ("calls", "Calls to the model, of K children each.", len(history.calls)),
            ("prompt_tokens", "Prompt tokens, for each child.", history.prompt_tokens),
            (
                "cached_prompt_tokens",
                "Prompt tokens that the prefix cache served.",
                history.cached_prompt_tokens,
            ),
            ("generated_tokens", "Tokens that were sampled.", history.generated_tokens),
            ("wasted_tokens", "Tokens sampled for wrong guesses.", history.wasted_tokens),
            ("llm_seconds", "Seconds of the engine, over all children.", history.llm_seconds),
            (
                "evaluation_seconds",
                "Seconds of candidates' own runs.",
                history.evaluation_seconds,
            ),
            ("wall_seconds", "Wall seconds, up to the last event.", history.wall_seconds),
            ("sessions", "Processes that worked on the run.", len(history.sessions)),
            ("training_steps", "Steps of training.", len(history.updates)),
        ):
            yield CounterMetricFamily(f"brood_{name}", help_text, value=value)
        yield _by("brood_refused_children", "Children not evaluated.", "reason", history.refusals)
        yield _by("brood_computed_prompt_tokens", "Not cached, and why.", "reason", history.missed)
        verdicts = CounterMetricFamily(
            "brood_verdicts", "Verdicts, by who made the program.", labels=["made_by", "outcome"]
        )
        for (maker, outcome), count in dict(self._outcomes).items():
            verdicts.add_metric([maker, outcome], count)
        yield verdicts
        yield from self._gauges()

    def _gauges(self) -> Iterator[Metric]:
        history = self._history
        first = history.verdicts.get(INITIAL)
        for name, help_text, value in (
            ("best_score", "The best score so far.", history.best_score),
            ("initial_score", "The initial program's score.", first.score if first else None),
            ("pending_candidates", "Candidates without a verdict.", len(history.pending)),
            ("since_best_candidates", "Candidates since the best.", history.since_best),
        ):
            if value is not None:
                yield GaugeMetricFamily(f"brood_{name}", help_text, value=value)
        used, limits = self._account.used, self._account.limits
        for name, help_text, values in (
            ("used", "What the run has used of what its budget limits.", used),
            ("limit", "The budget's limits.", limits),
        ):
            gauge = GaugeMetricFamily(f"brood_budget_{name}", help_text, labels=["limit"])
            for limit in limits:
                gauge.add_metric([limit.value], float(values[limit]))
            yield gauge


def check_port(port: int) -> None:
    """Check that a port of the loopback address is free; 0 always is.

    Raises:
        UserError: it is not.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise _taken(port, error) from error


@contextmanager
def serving(settings: RunSettings, *, run: str, history: RunHistory) -> Iterator[Figures]:
    """Serve a run's figures while the block lasts.

    Raises:
        UserError: the port is taken.
    """
    assert settings.prometheus is not None
    registry = CollectorRegistry()
    figures = Figures(settings, run=run, history=history)
    registry.register(figures)

    class Handler(_Handler):
        figures = registry

    try:
        server = ThreadingHTTPServer((HOST, settings.prometheus), Handler)
    except OSError as error:
        raise _taken(settings.prometheus, error) from error
    thread = threading.Thread(target=server.serve_forever, name="prometheus", daemon=True)
    with server:
        thread.start()
        log.info("figures for Prometheus: http://%s:%d/metrics", HOST, server.server_port)
        try:
            yield figures
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    figures: CollectorRegistry
    timeout = _TIMEOUT
    server_version = "brood"
    sys_version = ""

    def do_GET(self) -> None:
        if not is_local(self.headers.get("Host", "")):
            self.send_error(403, "This is for programs on this machine.")
        elif self.path.partition("?")[0] != "/metrics":
            self.send_error(404, "The figures are under /metrics.")
        else:
            body = generate_latest(self.figures)
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE_PLAIN_0_0_4)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a scrape every few seconds is no news."""


def _by(name: str, help_text: str, label: str, counts: Counter[Any]) -> Metric:
    family = CounterMetricFamily(name, help_text, labels=[label])
    for key, count in dict(counts).items():
        family.add_metric([str(key)], count)
    return family


def _taken(port: int, error: OSError) -> UserError:
    return UserError(
        f"prometheus={port}: that port can't be had: {error.strerror}; give another, or 0 for a "
        "free one"
    )
