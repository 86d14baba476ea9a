"""The benchmark of learning: what all its arms share, and which runs are made already."""

from __future__ import annotations

from bench import learning
from engine import config


def jobs(**options: str) -> list[learning.Job]:
    """Return the jobs of one problem and seed."""
    return learning.jobs_of({**learning.DEFAULTS, "problems": "signal", "seeds": "0", **options})


def test_no_arm_has_fills() -> None:
    every = jobs(arms=",".join(learning.ARMS))
    makers = {job.arm: config.resolve(job.command).fill.makers for job in every}
    assert makers == dict.fromkeys(learning.ARMS, ())


def test_runs_of_other_settings_have_other_folders() -> None:
    options = [{}, {"seconds": "90"}, {"settings": "search.k=4"}, {"model": "qwen3_coder_30b"}]
    folders = [job.folder for each in options for job in jobs(arms="none", **each)]
    assert len(set(folders)) == len(options) == len(folders)
    assert folders[0] == jobs(arms="none")[0].folder
    assert config.resolve(jobs(arms="none")[0].command).name == folders[0].name
