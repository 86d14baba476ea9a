"""The benchmark of learning: what all its arms share."""

from __future__ import annotations

from bench import learning
from engine import config


def test_no_arm_has_fills() -> None:
    names = {"arms": ",".join(learning.ARMS), "problems": "signal", "seeds": "0"}
    jobs = learning.jobs_of({**learning.DEFAULTS, **names})
    makers = {job.arm: config.resolve(job.command).fill.makers for job in jobs}
    assert makers == dict.fromkeys(learning.ARMS, ())
