"""What the server gives to whom: loopback, headers, the token, hostile text and requests."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
from hand_log import changed
from served import Page, hand_folder, served

from engine.core import Evaluation, Failure
from engine.store import Child, EventLog
from engine.syntax import read

BREAKS = "</script><script>document.title='broken'</script><img src=x onerror=alert(1)>"
NAME = "<b>a</b> & 100%"
LONG = "é" * 60
"""A name that takes more than 300 characters in an address."""


def hostile_folder(folder: Path) -> Path:
    hostile = replace(read("x = 1\n"), text=f"x = {BREAKS!r}\ny = 'a\u202e\x00'\n")
    events = changed(
        operator={each: f"<u>{BREAKS}" for each in ("1", "1.1")},
        evaluation={"1.2": Evaluation(score=None, failure=Failure.ERROR, message=BREAKS)},
    )
    for place, each in enumerate(events):
        if isinstance(each.event, Child) and each.event.id == "1.1":
            events[place] = replace(each, event=replace(each.event, program=hostile))
    return hand_folder(folder, events=events)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    hostile_folder(folder / NAME)
    hand_folder(folder / "a")
    hand_folder(folder / LONG)
    return folder


@pytest.fixture(scope="module")
def page(runs: Path) -> Iterator[Page]:
    with served(runs) as it:
        yield it


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200),
        ("/runs/a", 200),
        (f"/runs/{quote(NAME)}", 200),
        ("/runs/../a", 404),
        ("/runs/%2e%2e/a", 404),
        ("/runs/%2Fetc", 404),
        ("/runs/", 404),
        ("/assets/vega.js", 200),
        ("/assets/..%2Fapp.py", 404),
        ("/assets/run.html", 404),
        ("/program/a?id=9.9", 404),
        ("/programs/a?page=-1&order=x", 200),
        ("/steer/a", 405),
        ("/nothing", 404),
    ],
)
def test_every_answer_forbids_what_the_page_does_not_need(
    page: Page, path: str, status: int
) -> None:
    found, headers, body = page.ask(path)
    assert found == status, body
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; connect-src 'self'")
    assert "unsafe-inline" not in policy.partition("style-src")[0] and "unsafe-eval" not in policy
    assert "frame-ancestors 'none'" in policy and "form-action 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_another_host_name_is_refused(page: Page, host: str) -> None:
    for path in ("/", "/events", "/program/a?id=1.1"):
        assert page.ask(path, headers={"Host": host})[0] == 400
    assert page.ask("/", headers={"Host": f"localhost:{page.port}"})[0] == 200


@pytest.mark.parametrize(
    "lines",
    [
        "GET / HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: evil.example\r\nHost: {host}\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: {host}@evil.example\r\n\r\n",
        "GET /" + "a" * 70_000,
        "\x16\x03\x01 not even HTTP\r\n\r\n",
    ],
    ids=("two", "two, ours last", "none", "none, old", "user", "endless", "TLS"),
)
def test_a_request_with_no_host_of_ours_is_refused(page: Page, lines: str) -> None:
    with socket.create_connection(("127.0.0.1", page.port), timeout=60) as raw:
        raw.sendall(lines.format(host=f"127.0.0.1:{page.port}").encode("latin-1"))
        assert raw.recv(100).split()[1] == b"400"
    assert page.ask("/")[0] == 200


def test_another_pages_requests_get_nothing(page: Page) -> None:
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Headers": "x-brood-token"}
    status, headers, _ = page.ask("/steer/a", method="OPTIONS", headers=asked)
    assert status == 405 and not [name for name in headers if name.startswith("access-control")]
    simple = {"Origin": "http://evil.example", "Content-Type": "text/plain"}
    status, _, _ = page.ask("/steer/a", method="POST", body={"kind": "stop"}, headers=simple)
    assert status == 403


def test_slow_requests_keep_nobody_out(page: Page) -> None:
    slow = [socket.create_connection(("127.0.0.1", page.port), timeout=60) for _ in range(300)]
    try:
        whole = f"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n".encode()
        for number, each in enumerate(slow):  # half of them with a request that is answered first
            with contextlib.suppress(ConnectionError):  # some may have been silent for too long
                each.sendall(whole * (number % 2) + b"GET / HTTP/1.1\r\nHost: ")
        assert page.ask("/")[0] == 200
        for each in slow:  # the page ends those that go on being silent
            with contextlib.suppress(ConnectionResetError):
                while each.recv(1 << 16):
                    pass
        assert page.ask("/")[0] == 200
    finally:
        for each in slow:
            each.close()


def test_nobody_else_can_reach_it(page: Page) -> None:
    with socket.socket() as other, pytest.raises(OSError, match=r"refused|unreachable"):
        other.connect(("127.0.0.2", page.port))


class Markup(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_pages_load_their_own_files_only_and_hold_no_script(page: Page) -> None:
    for path in ("/", f"/runs/{quote(NAME)}"):
        text = page.ask(path)[2].decode()
        tags = Markup(text).tags
        scripts = [attributes for tag, attributes in tags if tag == "script"]
        assert scripts and all((each["src"] or "").startswith("/assets/") for each in scripts)
        assert text.count("</script>") == len(scripts)
        assert not [each for _, attributes in tags for each in attributes if each.startswith("on")]
        assert not [tag for tag, _ in tags if tag in ("b", "img", "iframe")]
        kinds = [tag for tag, _ in tags]
        for tag in ("main", "header", "h1", "footer"):
            assert kinds.count(tag) == 1
        assert ("html", {"lang": "en"}) in tags
    text = page.ask("/")[2].decode()
    assert page.token not in text


def test_hostile_text_is_told_as_text(page: Page) -> None:
    for name, told in page.told(f"/follow/{quote(NAME)}"):
        if name == "facts":
            assert told["name"] == NAME and told["href"] == f"/runs/{quote(NAME)}"
        if name == "figures":
            assert len(told["figures"]) == len(told["order"]) > 5
            break
    status, headers, body = page.ask(f"/program/{quote(NAME)}?id=1.1")
    found = json.loads(body)
    assert (status, headers["content-type"]) == (200, "application/json")
    assert BREAKS in found["text"] and "\\u{202e}\u2400" in found["text"]
    failed = json.loads(page.ask(f"/program/{quote(NAME)}?id=1.2")[2])
    assert failed["message"] == BREAKS


def test_the_link_of_a_long_name_leads_to_its_page(page: Page) -> None:
    (row,) = [each for each in next(page.told("/events"))[1]["runs"] if each["name"] == LONG]
    assert row["href"] == f"/runs/{quote(LONG)}" and page.ask(row["href"])[0] == 200
    assert next(page.told(row["href"].replace("/runs/", "/follow/")))[1]["href"] == row["href"]


def test_without_the_token_nothing_is_asked_of_a_run(page: Page, runs: Path) -> None:
    with EventLog(runs / "a"):
        next(iter(page.told("/events")))
        for token in ("", "x", page.token[:-1], page.token + "x", "é"):
            headers = {"X-Brood-Token": token.encode().decode("latin-1")}
            for body in ({"kind": "stop", "text": ""}, b"{"):
                status, _, answer = page.ask("/steer/a", method="POST", body=body, headers=headers)
                assert status == 403 and b"token" in answer
        assert page.ask(f"/steer/a?token={page.token}", method="POST", body=b"{}")[0] == 403
        for method in ("GET", "HEAD", "PUT", "DELETE"):
            headers = {"X-Brood-Token": page.token}
            assert page.ask("/steer/a", method=method, headers=headers)[0] == 405
    assert not (runs / "a" / "steering").exists()


def test_with_the_token_only_what_makes_sense_is_taken(page: Page, runs: Path) -> None:
    headers = {"X-Brood-Token": page.token}

    def status(body: object, name: str = "a") -> int:
        return page.ask(f"/steer/{name}", method="POST", body=body, headers=headers)[0]

    assert status({"kind": "stop", "text": ""}) == 409  # nobody works on it
    with EventLog(runs / "a"):
        told = page.told("/events")
        while next(told)[1]["runs"][1]["state"] != "running":
            pass
        assert status({"kind": "stop", "text": ""}, name="b") == 404
        for bad in (b"", b"[]", {"kind": "delete", "text": ""}, {"kind": "stop"}):
            assert status(bad) == 400
        assert status({"kind": "hint", "text": "x" * 2001}) == 400
        assert status({"kind": "hint", "text": "a\x1b[2J"}) == 400
        assert status(b" " * 70_000) == 413
        assert not (runs / "a" / "steering").exists()
        assert status({"kind": "hint", "text": "<i>median</i>"}) == 202
        (left,) = (runs / "a" / "steering").iterdir()
        assert json.loads(left.read_bytes()) == {"kind": "hint", "text": "<i>median</i>"}


def test_an_island_of_a_run_on_a_cluster_is_not_stopped_alone(tmp_path: Path) -> None:
    island = hand_folder(tmp_path / "one" / "islands" / "one.0")
    with served(island.parent) as page, EventLog(island):
        told = page.told("/events")
        while next(told)[1]["runs"][0]["state"] != "running":
            pass
        assert page.steer("one.0", "stop") == 409
        assert not (island / "steering").exists()
        assert page.steer("one.0", "pause") == 202


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give one folder"),
        (["a", "b"], "give one folder"),
        (["nowhere"], "nowhere is no folder"),
        ([".", "port=x"], "port is 'x'"),
        ([".", "port=65536"], "at most 65535"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "engine.dashboard", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


def test_a_port_in_use_is_one_line(page: Page, runs: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "engine.dashboard", str(runs), f"port={page.port}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2 and "give another one with port=" in done.stderr
