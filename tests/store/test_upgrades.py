"""Logs of earlier versions: read and reported on as they lie, resumed where the search is the same.

``data/f115d5d-*.tar.xz`` are runs that commit f115d5d made, with schema 6: one of mutations to its
end, one of SmolLM2 with an archive, guesses and preferred parents, and one that was killed. They
are as that version left them, but for names of folders.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import tarfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from command import run
from sqlalchemy import update

import engine
from engine.core import INITIAL, Evaluation, Event, UserError
from engine.dashboard.runs import WatchedRuns
from engine.report.__main__ import main as report
from engine.store import (
    Call,
    Child,
    EventLog,
    Seed,
    Session,
    Verdict,
    create_run,
    read_event,
    read_log,
)
from engine.store.database import EVENTS
from engine.store.migrations import SCHEMA_VERSION, STEPS
from engine.store.places import open_database
from engine.store.sqlite import SqliteDatabase

DATA = Path(__file__).parent / "data"
OLD = ("mutation", "smollm2", "killed")
FORM = "2378c4505b2e4dab"
"""Of the events of `SCHEMA_VERSION`."""


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(DATA / f"f115d5d-{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / f"f115d5d-{name}"


@pytest.fixture(params=OLD)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpacked(request.param, tmp_path / "runs")


def rows(folder: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "run.db")) as db:
        return db.execute("SELECT * FROM events ORDER BY seq").fetchall()


def version(folder: Path) -> int:
    with closing(open_database(folder, reads_only=True)) as database:
        return database.version


def test_an_old_log_is_read_event_by_event_and_left_as_it_is(old: Path) -> None:
    before = {path.name: path.read_bytes() for path in old.iterdir()}
    events = [each.event for each in read_log(old)]
    assert {path.name: path.read_bytes() for path in old.iterdir()} == before
    assert len(events) == len(rows(old)) == len({(each.KIND, each.subject) for each in events})
    for event, (_, _, _, kind, subject, body) in zip(events, rows(old), strict=True):
        was = json.loads(body)
        assert (event.KIND, event.subject) == (kind, subject)
        if isinstance(event, Child):
            assert (None if event.program is None else event.program.text) == was["program"]
        if isinstance(event, Verdict):
            assert event.score == was["score"] and event.evaluation.seconds == was["seconds"]
            assert dict(event.evaluation.metrics) == was["metrics"]


@pytest.mark.parametrize("name", ["mutation", "smollm2"])
def test_what_an_old_log_adds_up_to_is_what_its_own_summary_says(name: str, tmp_path: Path) -> None:
    folder = unpacked(name, tmp_path)
    summary = json.loads((folder / "summary.json").read_text())
    numbers = tmp_path / "progress.json"
    assert report([str(folder), "analysis=progress", f"json={numbers}"]) == 0
    figures = json.loads(numbers.read_text())["figures"]
    (end,) = figures["ends"]
    events = [each.event for each in read_log(folder)]
    children = [each for each in events if isinstance(each, Child)]
    refused = Counter(each.refusal for each in children if each.refusal is not None)
    assert end["best"] == summary["best_score"]
    assert (len(children), refused) == (summary["children"], summary["refused"])
    assert sum(each.prompt_tokens for each in children) == summary["prompt_tokens"]


def test_an_old_run_has_its_page_and_is_on_the_dashboard(old: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert report([str(old), f"html={page}"]) == 0
    assert page.stat().st_size > 10_000
    runs = WatchedRuns(old.parent)
    watched = runs.refresh()[old.name]
    while watched.is_behind:  # one refresh reads for a bounded time
        time.sleep(runs.pause)
        runs.refresh()
    assert not watched.error
    made = runs.snapshot(watched)
    assert made is not None and len(made.programs) == Counter(r[3] for r in rows(old))["child"] + 1


def test_an_event_of_an_old_log_is_found_by_its_kind_of_today(tmp_path: Path) -> None:
    folder = unpacked("mutation", tmp_path)
    with closing(sqlite3.connect(folder / "run.db")) as db:
        body = json.dumps(
            {"stage": "s", "iteration": 1, "correlation": 0.1, "error": 0.2, "pairs": 3}
        )
        db.execute("INSERT INTO events VALUES (31, 0, 9.0, 'screen_off', 's', ?)", [body])
        db.commit()
    assert isinstance(read_event(folder, Child, "0.3"), Child)
    kinds = {each.KIND: each for each in get_args(Event)}
    found = read_event(folder, kinds["switched_off"], "s")
    assert isinstance(found, kinds["switched_off"]) and found.subject == "s"


def test_a_run_of_another_search_is_not_resumed_and_the_way_out_works(
    old: Path, tmp_path: Path
) -> None:
    before = {path.name: path.read_bytes() for path in old.iterdir()}
    done = run(f"resume={old}", scratch=tmp_path / "scratch")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "has schema 6: the search that began it is not this version's" in line
    assert "pool.sources=[FOLDER]" in line
    assert {path.name: path.read_bytes() for path in old.iterdir()} == before
    with engine.Run.of(
        "signal",
        model="mutation",
        fill="none",
        runs=tmp_path / "new",
        pool={"sources": [str(old)], "most_of_run": 2},
        budget={"candidates": 1},
    ) as new:
        history = new.evolve()
    seeds = list(history.seeds.values())
    assert 1 <= len(seeds) <= 2
    assert all(isinstance(each, Seed) and each.source.startswith(old.name) for each in seeds)
    assert all(history.verdicts[each.candidate].score is not None for each in seeds)


CALL = Call(
    iteration=0,
    island=0,
    parent=INITIAL,
    rule="elite",
    operator="mutation",
    k=1,
    known=2,
    prompt="p",
    prompt_tokens=1,
    temperatures=(1.0,),
    seeds=(1,),
)
FIRST = (
    Session(number=0, engine="0", fingerprint="f"),
    Verdict(candidate=INITIAL, evaluation=Evaluation(score=0.5, failure=None), program="x = 1\n"),
    CALL,
)


def of_schema_9(folder: Path, url: str | None) -> Path:
    """Make a log as schema 9 had it before calls named their guidance."""
    create_run(folder, write_config=lambda path: path.touch(), events=FIRST, url=url)
    fields = msgspec.to_builtins(CALL)
    del fields["guidance"]
    marked(folder, 9, body=json.dumps(fields))
    return folder


def marked(folder: Path, schema: int, *, body: str | None = None) -> None:
    """Have a log say that it is of a schema, and its call's body as that had it."""
    with closing(open_database(folder)) as database:
        connection = database._connection  # type: ignore[attr-defined]
        with connection.begin():
            if body is not None:
                of_calls = update(EVENTS).where(EVENTS.c.kind == Call.KIND)
                connection.execute(of_calls.values(body=body))
            if isinstance(database, SqliteDatabase):
                connection.exec_driver_sql(f"PRAGMA user_version={schema}")
            else:
                name = database.name.rpartition("#")[2]
                connection.exec_driver_sql(f"COMMENT ON SCHEMA \"{name}\" IS 'brood {schema}'")


def test_a_log_of_the_same_search_is_read_and_brought_up_to_date_when_it_goes_on(
    tmp_path: Path, url: str | None
) -> None:
    folder = of_schema_9(tmp_path / "runs" / "nine", url)
    assert [each.event for each in read_log(folder)] == list(FIRST)
    assert read_event(folder, Call, "0") == CALL
    assert version(folder) == 9  # reading changes nothing
    with EventLog(folder) as log:
        assert [each.event for each in log.events()] == list(FIRST)
        log.append(Session(number=1, engine="0", fingerprint="f"))
        log.commit()
    assert version(folder) == SCHEMA_VERSION
    assert [each.event for each in read_log(folder)][: len(FIRST)] == list(FIRST)


def test_an_upgrade_that_fails_half_way_has_changed_nothing(tmp_path: Path) -> None:
    folder = of_schema_9(tmp_path / "nine", None)
    with closing(sqlite3.connect(folder / "run.db")) as db:
        db.execute("INSERT INTO events VALUES (4, 0, 9.0, 'call', '1', 'no JSON')")
        db.commit()
    before = rows(folder)
    for _ in range(2):  # the second time, to see that the lock was let go
        with pytest.raises(UserError, match=r"run\.db is damaged: event 4, of schema 9"):
            EventLog(folder)
    assert rows(folder) == before and version(folder) == 9


@pytest.mark.parametrize(
    ("schema", "words"),
    [(SCHEMA_VERSION + 1, "with the newer version that wrote it"), (5, "reads none below 6")],
)
def test_what_is_too_new_or_too_old_is_refused(
    schema: int, words: str, tmp_path: Path, url: str | None
) -> None:
    folder = of_schema_9(tmp_path / "runs" / "other", url)
    marked(folder, schema)
    for opened in (EventLog, lambda folder: list(read_log(folder))):
        with pytest.raises(UserError, match=f"has schema {schema}, .*{words}"):
            opened(folder)


def test_every_schema_leads_to_todays() -> None:
    for schema in STEPS:
        at = schema
        while at in STEPS:
            assert STEPS[at].to > at
            at = STEPS[at].to
        assert at == SCHEMA_VERSION


def test_the_number_changes_with_the_form_of_the_events() -> None:
    """If this fails, an event has another form: see ``engine.store.migrations``."""
    _, components = msgspec.json.schema_components(get_args(Event))
    text = re.sub(r'"(description|title)": "(\\.|[^"\\])*",? ?', "", json.dumps(components))
    text = re.sub(r', "(minimum|maximum)": \d+', "", text)  # they say what is damage
    assert (SCHEMA_VERSION, hashlib.sha256(text.encode()).hexdigest()[:16]) == (11, FORM)
