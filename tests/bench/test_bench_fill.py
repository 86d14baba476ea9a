"""The benchmark of fills, with evaluators that evaluate nothing."""

from __future__ import annotations

import json

import pytest

from bench import fill


def test_another_half_is_first_in_each_round(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pools: dict[bool, Pool] = {}
    beside_fills: list[bool] = []

    class Pool:
        """Takes programs; a verdict is in when it is asked for with time to wait."""

        def __init__(self, *, idle: bool = False, **_: object) -> None:
            self.in_flight = 0
            self._is_idle = idle
            pools[idle] = self

        def __enter__(self) -> Pool:
            return self

        def __exit__(self, *_: object) -> None: ...

        def check_walls(self, *, strict: bool) -> None: ...

        def submit(self, *, candidate_id: str, program: str) -> None:
            self.in_flight += 1
            if not self._is_idle:
                beside_fills.append(pools[True].in_flight > 0)

        def completed(self, *, timeout: float | None) -> None:
            self.in_flight -= timeout != 0

    monkeypatch.setattr(fill, "EvaluatorPool", Pool)
    monkeypatch.setattr(fill, "PAUSE", 0.0)
    fill.main(["problems=signal", "rounds=3", "calls=2"])
    first, second = [False, False, True, True], [True, True, False, False]
    assert beside_fills == [*first, *second, *first]
    found = json.loads(capsys.readouterr().out.splitlines()[-1])["problems"]["signal"]
    assert found["alone_ms"].keys() == {"median", "mean", "p95", "p99", "n"}
    assert found["alone_ms"]["n"] == found["beside_fills_ms"]["n"] == 6
    assert found["delay_ms"].keys() == found["delay_of_means_ms"].keys()
    assert found["fills"] > 0
