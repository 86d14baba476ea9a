"""The fan-out without a search, with the mutations as a model: no weights, real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import Engine, fanout
from engine.api.fan import siblings
from engine.api.saving import measured
from engine.core import UserError

PROGRAM = (
    "def f(x):\n    total = 0\n    for i in range(x):\n        total += i * 2\n    return total\n"
)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine("mutation") as opened:
        yield opened


def test_answers_come_as_they_finish_and_their_cost_is_counted(engine: Engine) -> None:
    fan = engine.fanout(PROGRAM, k=6, max_tokens=400)
    answers = list(fan)
    assert sorted(each.index for each in answers) == list(range(6))
    assert any(each.text != PROGRAM for each in answers)
    assert fan.cost.answers == 6 and fan.cost.seconds > 0
    assert fan.cost.prompt_tokens == fan.cost.computed_prompt_tokens == 6 * len(PROGRAM)
    assert fan.cost.generated_tokens == sum(len(each.token_ids) for each in answers)


def test_the_primitive_takes_each_answers_sampling(engine: Engine) -> None:
    sampling = [*siblings(1, max_tokens=5), *siblings(1, seed=1, max_tokens=400)]
    short, long = sorted(fanout(PROGRAM, sampling, engine=engine), key=lambda each: each.index)
    assert (len(short.token_ids), short.finish_reason) == (5, "length")
    assert long.finish_reason == "stop"
    tokens = engine.model.encode(PROGRAM)
    assert next(iter(fanout(tokens, sampling[1:], engine=engine))).text == long.text


def test_the_same_seed_gives_the_same_answers(engine: Engine) -> None:
    first, second, other = (
        {each.index: each.text for each in engine.fanout(PROGRAM, k=3, seed=seed, max_tokens=400)}
        for seed in (5, 5, 50)
    )
    assert first == second != other


def test_two_fans_at_once_keep_their_own_answers_and_one_may_be_left(engine: Engine) -> None:
    left, kept = (engine.fanout(PROGRAM, k=4, seed=seed, max_tokens=400) for seed in (0, 10))
    for _ in left:
        break
    assert list(left) == []
    assert len(list(kept)) == 4


def test_a_saving_is_of_the_same_requests(engine: Engine) -> None:
    found = measured(PROGRAM, siblings(4, max_tokens=400), engine=engine)
    assert len(found.answers) == found.together.answers == found.apart.answers == 4
    assert found.together.prompt_tokens == found.apart.prompt_tokens
    assert str(found).startswith("prompt tokens computed ")


def test_what_is_refused(engine: Engine) -> None:
    with pytest.raises(ValueError, match="k and max_tokens must be 1 or more"):
        engine.fanout(PROGRAM, k=0)
    with pytest.raises(ValueError, match="exceed the model's"):
        engine.fanout(PROGRAM, max_tokens=10**9)
    with pytest.raises(ValueError, match="sampling is empty"):
        fanout(PROGRAM, [], engine=engine)
    with pytest.raises(UserError, match="reads programs"):
        engine.chat("Hello")
    with pytest.raises(RuntimeError, match="not loaded"):
        fanout(PROGRAM, siblings(1), engine=Engine("mutation"))
    with pytest.raises(UserError, match="unknown model 'gpt'"):
        Engine("gpt")


@pytest.mark.parametrize("given", [Path("weights"), "weights", "./weights"])
def test_a_folder_of_weights_is_named_as_any_folder_is(
    given: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "config.json").write_text('{"max_position_embeddings": 512}')
    Engine(given)  # nothing is loaded, and nothing refused
