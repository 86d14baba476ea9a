"""Verdicts that the processes of a run share at a server."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from servers import Server

from engine.core import Evaluation
from engine.store.verdicts import VerdictTable

FOUND = Evaluation(score=0.5, failure=None, metrics={"width": 3.0}, seconds=1.25)


@pytest.fixture
def table(server: Server) -> Iterator[VerdictTable]:
    with closing(VerdictTable(server.url, name="a-run")) as found:
        yield found


def test_what_one_process_puts_another_finds(server: Server, table: VerdictTable) -> None:
    assert table.find("one") is None
    table.put("one", FOUND)
    with closing(VerdictTable(server.url, name="a-run")) as other:
        assert other.find("one") == FOUND
    with closing(VerdictTable(server.url, name="another-run")) as other:
        assert other.find("one") is None


def test_the_first_verdict_of_a_key_stays(table: VerdictTable) -> None:
    table.put("one", FOUND)
    table.put("one", Evaluation(score=7.0, failure=None, seconds=0.5))
    assert table.find("one") == FOUND


def test_what_the_table_has_may_not_be_finite_or_not_be_read(
    server: Server, table: VerdictTable
) -> None:
    odd = replace(FOUND, metrics={"width": math.inf})
    table.put("one", odd)
    assert table.find("one") == odd
    server.sql("""UPDATE "a-run".verdicts SET body = 'null'""")
    assert table.find("one") is None


def test_a_server_that_is_away_costs_a_verdict_and_no_more(
    server: Server, table: VerdictTable
) -> None:
    table.put("one", FOUND)
    server.stop("immediate")
    try:
        assert table.find("one") is None
        table.put("two", FOUND)
    finally:
        server.start()
    assert table.find("one") == FOUND
    assert table.find("two") is None


def test_many_processes_may_make_the_table_at_once(server: Server) -> None:
    every = [VerdictTable(server.url, name="a-run") for _ in range(8)]

    def use(number: int, table: VerdictTable) -> None:
        for _ in range(3):  # the first attempt may meet another's
            table.put(f"{number}", FOUND)

    threads = [threading.Thread(target=use, args=each) for each in enumerate(every)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(every[0].find(f"{number}") == FOUND for number in range(8))
    for table in every:
        table.close()
