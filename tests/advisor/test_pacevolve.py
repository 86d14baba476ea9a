"""``method=pacevolve`` as a user types it, with the embedded model."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from command import read_events, run

SMALL = (
    *("method=pacevolve", "learning=none", "problem=signal", "search.k=2", "islands.count=1"),
    *("model.max_tokens=48", "advisor.answer_tokens=160", "advisor.repository_tokens=200"),
    *("search.temperature_min=0.3", "search.temperature_max=0.3"),
)


@pytest.mark.slow
def test_a_run_with_the_embedded_model_has_ideas_and_goes_on(tmp_path: Path) -> None:
    done = run(
        *(*SMALL, "budget.candidates=null", "budget.tokens=2500", "budget.seconds=null"),
        *(f"runs={tmp_path}", "name=advised"),
        scratch=tmp_path / "scratch",
    )
    assert done.returncode == 0, done.stderr
    assert "advisor: programs are written by the model without its adapter" in done.stderr
    events = read_events(tmp_path / "advised")
    assert len(events["advice"]) == len(events["child"]) >= 4
    assert len(events["idea"]) >= 6
    asked = Counter(c["question"] for each in events["advice"] for c in each["consultations"])
    assert asked["ideas"] >= asked["selection"] >= 2 and asked["novelty"]
    cached = [c for each in events["advice"][1:] for c in each["consultations"]]
    assert sum(c["cached_prompt_tokens"] for c in cached) > 0.5 * sum(
        c["prompt_tokens"] for c in cached
    )
    summary = json.loads((tmp_path / "advised" / "summary.json").read_text())
    assert summary["advisor"]["implementer"] == "model"
    assert 0 < summary["advisor"]["advisor_tokens"] < summary["generated_tokens"]
    assert "Advisor: ideas " in done.stdout
    again = run(f"resume={tmp_path / 'advised'}", scratch=tmp_path / "scratch")
    assert again.returncode == 0, again.stderr


def test_a_key_that_is_not_there_is_told_before_anything_is_loaded(tmp_path: Path) -> None:
    done = run(
        *(*SMALL, "advisor.implementer=endpoint", "advisor.endpoint.model=m"),
        *("advisor.endpoint.url=http://127.0.0.1:9/v1", "advisor.endpoint.key_env=BROOD_NO_KEY"),
        *(f"runs={tmp_path}", "name=advised"),
        scratch=tmp_path / "scratch",
    )
    assert done.returncode == 2
    assert "advisor.endpoint.key_env=BROOD_NO_KEY: the environment has no key" in done.stderr
    assert not (tmp_path / "advised").exists()
