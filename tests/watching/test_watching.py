"""A run that is watched: lines of JSON, figures for Prometheus, spans of OpenTelemetry."""

from __future__ import annotations

import base64
import json
import logging
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from command import read_events, run
from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status, TracesData
from prometheus_client.parser import text_string_to_metric_families

import engine
from engine import config
from engine.core import UserError
from engine.store import RunHistory
from engine.watching import check_watching

CHEAP = {
    "model": "mutation",
    "fill": "none",
    "budget": {"candidates": 10},
    "search": {"k": 4},
    "pipeline": {"speculate": False},
}


def test_each_event_and_each_message_is_a_line_of_json(tmp_path: Path) -> None:
    done = run(
        *("problem=signal", "model=mutation", "budget.candidates=6", "log=json"),
        *(f"runs={tmp_path}", "name=one"),
        scratch=tmp_path / "scratch",
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert all({"time", "level"} <= line.keys() for line in lines)
    told = [line for line in lines if "event" in line]
    recorded = read_events(tmp_path / "one")
    assert Counter(line["event"] for line in told) == {
        kind: len(events) for kind, events in recorded.items() if events
    }
    scores = {line["subject"]: line["score"] for line in told if line["event"] == "verdict"}
    assert scores == {
        each["candidate"]: each["evaluation"]["score"] for each in recorded["verdict"]
    }
    assert {(line["run"], line["session"]) for line in told} == {("one", 0)}
    assert not any({"prompt", "completion", "program"} & line.keys() for line in told)
    assert any("walls of the sandbox" in line.get("message", "") for line in lines)
    done = run(
        f"resume={tmp_path / 'one'}",
        "log=json",
        "prometheus=0",
        scratch=tmp_path / "scratch",
    )
    assert done.returncode == 0 and not done.stderr  # it is over: nobody has anything to say


def test_a_message_is_one_line_whatever_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    from engine.watching import JsonFormatter

    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("of this test")
    logger.addHandler(handler)
    logger.propagate = False  # or pytest keeps what is no text, which its processes can't send
    try:
        raise ValueError("half a pair: \ud800\n")
    except ValueError:
        logger.exception("%s", 'two\nlines "quoted" \u2028')
    finally:
        logger.removeHandler(handler)
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    told = json.loads(line)
    assert told["message"] == 'two\nlines "quoted" \u2028'
    assert "ValueError: half a pair: ?" in told["exception"]


def ask(url: str, **headers: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
        text: str = answer.read().decode()
        return text


def figures(text: str) -> dict[tuple[str, ...], float]:
    """Return what Prometheus makes of an answer: values by name and labels."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_prometheus_finds_what_the_log_adds_up_to(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "brood")
    with engine.Run.of("signal", runs=tmp_path, name="one", prometheus=0, **CHEAP) as one:
        asked: list[tuple[str, RunHistory]] = []

        def url() -> str:
            said = [each.getMessage() for each in caplog.records]
            return next(each for each in said if "/metrics" in each).split(": ")[1]

        def tell(events: object) -> None:  # the loop waits, so nothing changes meanwhile
            history = one.history
            if history.evaluated < 3:
                return
            found = figures(ask(url()))
            asked.append((url(), history))
            assert found["brood_candidates_total",] == history.evaluated
            assert found["brood_children_total",] == len(history.children)
            assert found["brood_best_score",] == history.best_score
            assert found["brood_generated_tokens_total",] == history.generated_tokens
            assert found["brood_pending_candidates",] == len(history.pending)
            assert found["brood_budget_limit", "candidates"] == 10
            assert found["brood_run_info", "mutation", "signal", "one", engine.__version__] == 1
            verdicts = Counter(
                (history.made_by(name), str(each.evaluation.failure or "valid"))
                for name, each in history.verdicts.items()
            )
            for (maker, outcome), count in verdicts.items():
                assert found["brood_verdicts_total", maker, outcome] == count
            refused = {name[1]: n for name, n in found.items() if "refused" in name[0]}
            assert refused == {str(name): n for name, n in history.refusals.items()}

        one.evolve(tell=tell)
    assert asked
    with pytest.raises(urllib.error.URLError, match="refused"):
        ask(asked[0][0])


def test_prometheus_is_for_programs_on_this_machine(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "brood")
    answers: list[int] = []
    with engine.Run.of("signal", runs=tmp_path, prometheus=0, **CHEAP) as one:

        def tell(events: object) -> None:
            if answers:
                return
            said = [each.getMessage() for each in caplog.records]
            url = next(each for each in said if "/metrics" in each).split(": ")[1]
            assert url.startswith("http://127.0.0.1:")
            for host, path in (("evil.example", "metrics"), ("localhost:1", "metrics"), ("", "x")):
                try:
                    ask(url.replace("metrics", path), **({"Host": host} if host else {}))
                    answers.append(200)
                except urllib.error.HTTPError as error:
                    answers.append(error.code)

        one.evolve(tell=tell)
    assert answers == [403, 200, 404]


@contextmanager
def collector(status: int = 200) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Run a collector of OTLP by HTTP; yield its address and the requests that it got."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            assert self.headers["Content-Type"] == "application/json"
            requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            thread.join()


def spans_of(requests: list[dict[str, Any]]) -> list[Span]:
    """Return the spans of requests, as OpenTelemetry's own schema reads them."""
    found = []
    for request in requests:
        for scope in request["resourceSpans"][0]["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):  # hex in OTLP's JSON
                    if key in span:
                        span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
        parsed = json_format.ParseDict(request, TracesData())
        for of_run in parsed.resource_spans:
            names = {each.key: each.value for each in of_run.resource.attributes}
            assert names["service.name"].string_value == "brood"
            found += [span for scope in of_run.scope_spans for span in scope.spans]
    return found


def check_spans(spans: list[Span], history: RunHistory) -> None:
    by_id = {(span.trace_id, span.span_id): span for span in spans}
    assert len(by_id) == len(spans)
    names = Counter(span.name.split(" ")[0] for span in spans)
    assert names["iteration"] == names["call"] == len(history.calls)
    assert names["child"] == len(history.children)
    assert names["evaluation"] == history.evaluated
    parents = {"call": "iteration", "child": "call", "evaluation": "child"}
    for span in spans:
        kind = span.name.split(" ")[0]
        assert len(span.trace_id) == 16 and len(span.span_id) == 8
        assert span.start_time_unix_nano <= span.end_time_unix_nano
        if kind == "iteration":
            assert not span.parent_span_id
            continue
        parent = by_id[span.trace_id, span.parent_span_id]
        assert parent.name.split(" ")[0] == parents[kind]
        if kind != "evaluation":
            assert parent.start_time_unix_nano <= span.start_time_unix_nano
            assert span.end_time_unix_nano <= parent.end_time_unix_nano
    failed = [span for span in spans if span.status.code == Status.STATUS_CODE_ERROR]
    assert len(failed) == history.evaluated - history.valid


def test_spans_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "spans.jsonl"
    with engine.Run.of("signal", runs=tmp_path, opentelemetry=file, **CHEAP) as one:
        history = one.evolve(drains=True)
    requests = [json.loads(line) for line in file.read_text().splitlines()]
    check_spans(spans_of(requests), history)


def test_spans_of_a_run_that_goes_on(tmp_path: Path) -> None:
    # More than all islands have under way at once, or the first session might be the last one.
    longer = CHEAP | {"budget": {"candidates": 40}}
    with engine.Run.of("signal", runs=tmp_path, name="one", **longer) as one:
        one.evolve(stopped=lambda: one.history.evaluated >= 3)
        assert not one.is_over
        before = set(one.history.verdicts)
    file = tmp_path / "spans.jsonl"
    with engine.Run.resume(tmp_path / "one", changes=[f"opentelemetry={file}"]) as one:
        history = one.evolve()
    spans = spans_of([json.loads(line) for line in file.read_text().splitlines()])
    names = Counter(span.name.split(" ")[0] for span in spans)
    assert names["evaluation"] == len(set(history.verdicts) - before)
    assert {span.name for span in spans} >= {f"iteration {history.next_iteration - 1}"}


def test_a_collector_gets_the_spans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # which nobody may be sent to
    with (
        collector() as (address, requests),
        engine.Run.of("signal", runs=tmp_path, opentelemetry=address, **CHEAP) as one,
    ):
        history = one.evolve(drains=True)
    check_spans(spans_of(requests), history)


@pytest.mark.parametrize("is_away", [True, False])
def test_a_collector_that_fails_ends_no_run(
    is_away: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with collector(status=503) as (address, _):
        target = "http://127.0.0.1:9" if is_away else address
        with engine.Run.of("signal", runs=tmp_path, opentelemetry=target, **CHEAP) as one:
            assert one.evolve().evaluated == 10
    said = [each.getMessage() for each in caplog.records if "spans" in each.getMessage()]
    assert len(said) == 2 and "refused" in said[0] if is_away else "answered 503" in said[0]


@pytest.mark.parametrize(
    "target",
    [
        "http://example.com:4318",
        "http://127.0.0.1.example.com",
        "http://user@127.0.0.1:4318",
        "https://127.0.0.1:4318",
        "http://[::1",
        "http://0.0.0.0:4318",
        "/nowhere/spans.jsonl",
    ],
)
def test_spans_go_nowhere_else(target: str, tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match="opentelemetry"),
        engine.Run.of("signal", runs=tmp_path, opentelemetry=target, **CHEAP),
    ):
        pass
    assert not any(tmp_path.iterdir())


def test_a_check_leaves_files_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a line\n")
    (tmp_path / "link").symlink_to("made")
    for name in ("kept", "link", "new"):
        check_watching(config.resolve([f"opentelemetry={tmp_path / name}"]))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["kept", "link"]
    assert (tmp_path / "kept").read_text() == "a line\n"


def test_a_run_that_is_refused_leaves_no_file_of_spans(tmp_path: Path) -> None:
    given = {"opentelemetry": tmp_path / "spans.jsonl", "pool": {"sources": tmp_path / "none"}}
    with (
        pytest.raises(UserError, match="none is not a folder"),
        engine.Run.of("signal", runs=tmp_path, **given, **CHEAP),
    ):
        pass
    assert not any(tmp_path.iterdir())


def test_a_port_that_is_taken_is_said_before_the_run_begins(tmp_path: Path) -> None:
    with collector() as (address, _):
        port = int(address.rpartition(":")[2])
        with (
            pytest.raises(UserError, match=f"prometheus={port}: that port can't be had"),
            engine.Run.of("signal", runs=tmp_path, prometheus=port, **CHEAP),
        ):
            pass
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("given", [{"log": "json"}, {"prometheus": 0}, {"opentelemetry": "f"}])
def test_nobody_watches_one_process_of_a_cluster(given: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="with a cluster"):
        engine.Run.of("signal", cluster="ray", runs=tmp_path, **given, **CHEAP)


def test_what_is_off_is_not_even_imported() -> None:
    code = (
        "import sys, engine.run; from engine import config; config.resolve([]);"
        "print([each for each in ('prometheus_client', 'opentelemetry', 'engine.watching.otlp') "
        "if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
