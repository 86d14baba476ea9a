"""The endpoint: what it is sent, and that nothing which it does ends a run."""

from __future__ import annotations

import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from scripted import beginning, go_on, history_of, settings_of
from service import Service, completion, send, serving

from engine.advisor.endpoint import MOST_BYTES, Endpoint, Reply, key_of
from engine.core import Refusal, UserError
from engine.settings import EndpointSettings

MESSAGES = ({"role": "system", "content": "s"}, {"role": "user", "content": "Write f. ½"})


def endpoint_of(service: Service | str, *, seconds: float = 60.0, **more: Any) -> Endpoint:
    url = service if isinstance(service, str) else service.url
    settings = EndpointSettings(
        url=url, model="m", key_env=None, seconds=seconds, at_once=more.pop("at_once", 4)
    )
    return Endpoint(settings, key=more.pop("key", None), notify=more.pop("notify", lambda: None))


def ask(endpoint: Endpoint, count: int = 1) -> dict[int, Reply | str]:
    """Send requests and wait until all are over."""
    for ticket in range(count):
        endpoint.submit(ticket, messages=MESSAGES, temperature=0.5, seed=2**63, max_tokens=9)
    return rest_of(endpoint)


def rest_of(endpoint: Endpoint) -> dict[int, Reply | str]:
    """Wait until all requests are over."""
    bell = threading.Event()
    endpoint._notify = bell.set  # rung by the requests' threads
    over = dict(endpoint.completed())
    while endpoint.in_flight:
        assert bell.wait(60)
        bell.clear()
        over |= dict(endpoint.completed())
    return over


def answered(body: bytes, *, status: int = 200, **more: str) -> Reply | str:
    """Return what becomes of one request to a service that answers so."""
    with serving(lambda handler, _: send(handler, body, status=status, **more)) as service:
        return ask(endpoint_of(service))[0]


def test_a_request_is_a_chat_completion_and_its_reply_is_read() -> None:
    with serving(lambda handler, _: send(handler, completion("def f ½"))) as service:
        reply = ask(endpoint_of(service, key="secret"))[0]
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason) == ("def f ½", "stop")
    assert (reply.prompt_tokens, reply.tokens) == (7, 5)
    assert service.paths == ["/v1/chat/completions"]
    body = service.bodies[0]
    assert body.pop("seed") < 1 << 31
    assert body == {
        "model": "m",
        "messages": [*MESSAGES],
        "temperature": 0.5,
        "max_tokens": 9,
    }
    assert service.headers[0]["authorization"] == "Bearer secret"


def test_without_a_key_none_is_sent() -> None:
    with serving(lambda handler, _: send(handler, completion("x"))) as service:
        ask(endpoint_of(service))
    assert "authorization" not in service.headers[0]


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_another_status_than_200_is_told_in_a_line(status: int) -> None:
    said = answered(b"out\n\x1b[31m of order " + b"x" * 10_000, status=status)
    assert isinstance(said, str) and said.startswith(f"status {status}: out [31m of order xx")
    assert len(said) < 250 and said.isprintable()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"<html>",
        b"[]",
        b"null",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [null]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": null}}]}',
        b'{"choices": [{"message": {"content": 3}}]}',
        b'{"choices": [{"message": {"content": "x = 1"}, "finish_reason": "error"}]}',
        b"[" * 100_000,
    ],
)
def test_a_reply_that_is_none_is_told_in_a_line(body: bytes) -> None:
    said = answered(body)
    assert isinstance(said, str) and said.startswith("ValueError: the reply ")


@pytest.mark.parametrize("reason", [3, "\ud800", "content_filter"])
def test_an_odd_reply_that_has_a_text_is_taken(reason: object) -> None:
    choice = {"message": {"content": "a \ud800 b"}, "finish_reason": reason}
    usage = {"prompt_tokens": "many", "completion_tokens": -1}
    reply = answered(json.dumps({"choices": [choice], "usage": usage}).encode())
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason) == ("a ? b", "stop")
    assert (reply.prompt_tokens, reply.tokens) == (0, 0)


def test_a_reply_without_an_end_is_given_up() -> None:
    def flood(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.end_headers()
        for _ in range(1 + MOST_BYTES // (1 << 16)):
            handler.wfile.write(bytes(1 << 16))

    with serving(flood) as service:
        assert ask(endpoint_of(service))[0] == "ValueError: the reply is longer than 16 MiB"


def test_silence_and_a_trickle_are_given_up_in_time() -> None:
    free = threading.Event()

    def silence(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        free.wait(60)

    def trickle(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not free.wait(0.05):
            handler.wfile.write(b" ")

    for answer in (silence, trickle):
        with serving(answer) as service:
            said = ask(endpoint_of(service, seconds=0.3))[0]
            free.set()
        free.clear()
        assert isinstance(said, str) and said.startswith("TimeoutError")


def test_a_service_that_is_not_there_is_told_in_a_line() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        said = ask(endpoint_of(f"http://127.0.0.1:{unused.getsockname()[1]}/v1"))[0]
    assert isinstance(said, str) and said.startswith("URLError: ")


def test_a_redirection_is_not_followed_so_that_the_key_stays() -> None:
    with serving(lambda handler, _: send(handler, completion("x"))) as elsewhere:
        place = f"{elsewhere.url}/chat/completions"
        with serving(lambda handler, _: send(handler, b"", status=302, Location=place)) as service:
            said = ask(endpoint_of(service, key="secret"))[0]
        assert isinstance(said, str) and said.startswith("status 302")
        assert not elsewhere.paths


def test_no_more_requests_are_made_at_once_than_allowed() -> None:
    lock, active, busiest = threading.Lock(), 0, 0

    def slow(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        nonlocal active, busiest
        with lock:
            active += 1
            busiest = max(busiest, active)
        time.sleep(0.05)
        with lock:  # before the answer: who has it may ask for the next one
            active -= 1
        send(handler, completion("x"))

    with serving(slow) as service:
        over = ask(endpoint_of(service, at_once=2), count=12)
    assert sorted(over) == [*range(12)]
    assert busiest <= 2


def test_what_is_forgotten_is_not_waited_for() -> None:
    free = threading.Event()

    def wait(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        free.wait(60)
        send(handler, completion("x"))

    with serving(wait) as service:
        endpoint = endpoint_of(service)
        endpoint.submit(0, messages=MESSAGES, temperature=1.0, seed=1, max_tokens=9)
        endpoint.forget(0)
        assert (endpoint.in_flight, endpoint.completed()) == (0, [])
        free.set()


def test_what_is_forgotten_before_there_is_room_is_never_sent() -> None:
    free, busy = threading.Event(), threading.Event()

    def wait(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        busy.set()
        free.wait(60)
        send(handler, completion("x"))

    with serving(wait) as service:
        endpoint = endpoint_of(service, at_once=1)

        def submit(ticket: int) -> None:
            endpoint.submit(ticket, messages=MESSAGES, temperature=1.0, seed=ticket, max_tokens=9)

        submit(0)
        assert busy.wait(60)
        for ticket in (1, 2, 3):
            submit(ticket)
        for ticket in (1, 2):
            endpoint.forget(ticket)
        free.set()
        over = rest_of(endpoint)
        submit(4)  # its turn comes behind those of 1 and 2
        over |= rest_of(endpoint)
    assert sorted(over) == [0, 3, 4]
    assert [each["seed"] for each in service.bodies] == [0, 3, 4]


# In a run.

ENDPOINT = ("advisor.implementer=endpoint", "advisor.endpoint.model=big", "budget.candidates=8")


def test_a_run_has_its_programs_written_by_the_endpoint() -> None:
    def write(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        send(handler, completion(f"```python\ndef f(x):\n    return x * {body['seed']}\n```"))

    events = beginning()
    with serving(write) as service:
        model = go_on(settings_of(*ENDPOINT, f"advisor.endpoint.url={service.url}"), events)
    history = history_of(events)
    assert history.evaluated == 8
    assert "program" not in {each.kind for each in model.asked}
    done = [each for each in history.advice.values() if each.endpoint_tokens]
    assert len(done) >= 8 and {each.implementer for each in done} == {"endpoint"}
    for each in done:
        child = history.children[each.child]
        assert (child.completion_ids, child.prompt_tokens, child.missed) == ((), 0, {})
        assert (each.endpoint_prompt_tokens, each.endpoint_tokens) == (7, 5)
    assert history.generated_tokens == history.advisor_tokens
    system, user = service.bodies[0]["messages"]
    assert system["role"] == "system" and system["content"].startswith("You improve Python")
    assert user["content"].startswith("# Task\nMake f good.")
    assert "# Experiment\n" in user["content"] and "<model>" not in user["content"]


def test_a_run_outlives_an_endpoint_that_fails_half_of_the_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def write(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        if body["seed"] % 2:
            send(handler, b"no", status=500)
        else:
            text = f"```python\ndef f(x):\n    return x * {body['seed']}\n```"
            send(handler, completion(text))

    events = beginning()
    with serving(write) as service, caplog.at_level("WARNING"):
        go_on(settings_of(*ENDPOINT, f"advisor.endpoint.url={service.url}"), events)
    history = history_of(events)
    assert history.evaluated == 8
    failed = [each for each in history.advice.values() if each.outage is not None]
    assert failed
    for each in failed:
        assert each.outage == "status 500: no" and each.idea is not None
        assert history.children[each.child].refusal is Refusal.UNPARSED
    assert f"no program for {failed[0].child}: the endpoint gave none (status 500: no)" in (
        caplog.text
    )


def test_a_run_that_ends_does_not_wait_for_the_endpoint() -> None:
    free = threading.Event()

    def wait(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        free.wait(60)

    events = beginning()
    with serving(wait) as service:
        url, budget = f"advisor.endpoint.url={service.url}", ("budget.candidates=null",)
        go_on(settings_of(*ENDPOINT, url, *budget, "budget.seconds=10", "islands.count=2"), events)
        free.set()
    history = history_of(events)
    assert set(history.refusals) == {Refusal.BUDGET}
    assert {child.finish_reason for child in history.children.values()} == {"abort"}


# The key.


def test_the_key_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    given = ("advisor.endpoint.url=https://example.org/v1", "advisor.endpoint.key_env=BROOD_KEY")
    monkeypatch.delenv("BROOD_KEY", raising=False)
    assert key_of(settings_of(*given).advisor) is None  # nobody asks for it
    advisor = settings_of(*ENDPOINT, *given).advisor
    with pytest.raises(UserError, match="key_env=BROOD_KEY: the environment has no key"):
        key_of(advisor)
    monkeypatch.setenv("BROOD_KEY", "secret\nX-Other: header")
    with pytest.raises(UserError):
        key_of(advisor)
    monkeypatch.setenv("BROOD_KEY", " secret\n")
    assert key_of(advisor) == "secret"
