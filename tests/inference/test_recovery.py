"""The real engine fails in a step: what was under way comes all the same, once, and nothing else.

The errors are raised in place of the engine's forward pass; see ``faults.py``.
"""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Iterator, Sequence

import pytest
import torch
from failing import at, inject

from engine.core import GIVEN_UP, Generation
from engine.inference import LanguageModel, ModelLost, Sampling, SteadyModel, llm
from engine.inference.recovery import Failure
from engine.inference.steady_children import SteadyChildren

STORY = "Once upon a time, in a village by the sea, there lived an old fisherman who"
LIST = "A list of animals, one a line:\n"
POISON = "This prompt is poison to the engine, and nobody knows why. " * 2


@pytest.fixture
def steady(model: LanguageModel) -> Iterator[SteadyModel]:
    """The model of all tests, which has as much room afterwards as before."""
    most = model.most_at_once
    model.forget()
    yield SteadyModel(model)
    if model.most_at_once != most:
        model.reload(most_at_once=most)


def begin(
    steady: SteadyModel, prompt: str, *lengths: int, banned: Sequence[int] = (), seed: int = 0
) -> SteadyChildren:
    return steady.fanout(
        token_ids=steady.encode(prompt),
        sampling=[
            Sampling(
                temperature=0.8,
                seed=seed + number,
                stop=(),
                max_tokens=length,
                banned=tuple(banned),
            )
            for number, length in enumerate(lengths)
        ],
    )


def collect(steady: SteadyModel, *calls: SteadyChildren) -> list[list[Generation]]:
    """Step until all calls are over; return the children of each, by index."""
    found: list[list[Generation]] = [[] for _ in calls]
    while any(call.indices for call in calls):
        steady.step()
        for own, call in zip(found, calls, strict=True):
            own += call.take()
    for own, call in zip(found, calls, strict=True):
        own += call.take()
    return [sorted(own, key=lambda child: child.index) for own in found]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def test_after_an_error_each_child_comes_once_and_as_it_would_have(
    steady: SteadyModel,
    endless: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def answers() -> list[list[Generation]]:
        calls = [begin(steady, STORY, 9, 9, banned=endless), begin(steady, LIST, 12)]
        return collect(steady, *calls)

    whole = answers()
    steady.forget()
    faults = inject(monkeypatch, at(5))
    again = answers()
    assert (faults.failed, faults.passes) == (1, 5 + 12)
    assert [[child.index for child in call] for call in again] == [[0, 1], [0]]
    for before, after in zip(whole, again, strict=True):
        assert [child.token_ids for child in after] == [child.token_ids for child in before]
    (line,) = warnings(caplog)
    assert line.startswith("the engine failed (RuntimeError: injected (failing.py:")
    assert line.endswith("it is loaded again, and 3 children are generated again")


@pytest.mark.slow
def test_what_finished_before_an_error_is_not_generated_again(
    steady: SteadyModel, endless: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = begin(steady, STORY, 2, 8, banned=endless)
    inject(monkeypatch, at(5))
    (children,) = collect(steady, call)
    assert [child.generated_tokens for child in children] == [2, 8]
    # The second one pays for the steps that were lost, too.
    assert children[1].llm_seconds > children[0].llm_seconds


@pytest.mark.slow
def test_nothing_of_the_engine_that_failed_stays_in_memory(
    steady: SteadyModel, model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = weakref.ref(model._engine)
    gc.freeze()  # as a run does once its model is loaded
    inject(monkeypatch, at(2))
    collect(steady, begin(steady, STORY, 3))
    assert model._engine is not failed()
    assert failed() is None


def test_a_child_may_be_ended_while_it_waits_for_an_engine(
    steady: SteadyModel, endless: tuple[int, ...]
) -> None:
    call = begin(steady, STORY, 3, 3, banned=endless)
    call.abort(1)
    (children,) = collect(steady, call)
    assert [(child.index, child.finish_reason) for child in children] == [
        (0, "length"),
        (1, "abort"),
    ]


@pytest.mark.slow
def test_the_call_that_the_engine_fails_on_is_found_and_given_up(
    steady: SteadyModel,
    endless: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    poison = steady.encode(POISON)
    faults = inject(
        monkeypatch, lambda each: RuntimeError("poisoned") if poison in each.prompts else None
    )
    calls = [
        begin(steady, STORY, 6, 6, banned=endless),
        begin(steady, POISON, 6, 6, banned=endless),
        begin(steady, LIST, 6, banned=endless),
    ]
    story, poisoned, animals = collect(steady, *calls)
    assert faults.failed == 3  # twice with the others, once alone
    assert [child.finish_reason for child in (*story, *animals)] == ["length"] * 3
    assert [(each.index, each.finish_reason, each.text) for each in poisoned] == [
        (0, GIVEN_UP, ""),
        (1, GIVEN_UP, ""),
    ]
    *_, last = warnings(caplog)
    assert last == (
        "a call of 2 children is given up: the engine failed on it 3 times; they are recorded as "
        "refused (failed)"
    )
    # Afterwards the engine is as good as new.
    (late,) = collect(steady, begin(steady, STORY, 4, banned=endless))
    assert late[0].generated_tokens == 4


def test_a_request_that_vllm_refuses_ends_its_own_call_alone(
    steady: SteadyModel,
    endless: tuple[int, ...],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faults = inject(monkeypatch, at())
    fine = Sampling(temperature=0.8, seed=0, stop=(), max_tokens=4)
    broken = Sampling(temperature=0.8, seed=0, stop=(), max_tokens=4, grammar="root ::= (")
    other = begin(steady, STORY, 5, banned=endless)
    call = steady.fanout(token_ids=steady.encode(LIST), sampling=[fine, broken])
    refused, whole = collect(steady, call, other)
    assert [child.finish_reason for child in refused] == [GIVEN_UP] * 2
    assert [child.generated_tokens for child in whole] == [5]
    assert faults.passes == 5  # the engine was not loaded again, and has nothing of the call
    (line,) = warnings(caplog)
    assert "2 children is given up: vLLM refuses it: " in line


@pytest.mark.slow
def test_out_of_memory_lowers_how_many_are_generated_at_once(
    steady: SteadyModel,
    model: LanguageModel,
    endless: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = torch.OutOfMemoryError("CUDA out of memory")
    inject(monkeypatch, lambda each: error if each.rows > 2 else None)
    (children,) = collect(steady, begin(steady, STORY, *[3] * 5, banned=endless))
    assert [child.generated_tokens for child in children] == [3] * 5
    assert model.most_at_once == 2
    (line,) = warnings(caplog)
    assert "for 2 at once instead of 5" in line


@pytest.mark.parametrize(
    ("error", "is_it"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (MemoryError(), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8"), True),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
    ],
)
def test_which_errors_are_of_memory(error: Exception, is_it: bool) -> None:
    assert Failure.of(error).of_memory is is_it


@pytest.mark.slow
def test_memory_that_does_not_do_for_one_is_a_failure_like_others(
    steady: SteadyModel, endless: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    poison = steady.encode(POISON)
    faults = inject(
        monkeypatch,
        lambda each: torch.OutOfMemoryError("too long") if poison in each.prompts else None,
    )
    (children,) = collect(steady, begin(steady, POISON, 3, 3, banned=endless))
    assert [child.finish_reason for child in children] == [GIVEN_UP] * 2
    assert faults.failed == 1 + 3  # of two at once, of one


@pytest.mark.slow
def test_an_engine_that_fails_on_everything_ends_it_in_a_line(
    steady: SteadyModel, model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = inject(monkeypatch, lambda each: RuntimeError("device lost"))
    with pytest.raises(ModelLost, match="fails on any prompt: RuntimeError: device lost") as lost:
        collect(steady, begin(steady, STORY, 3))
    assert faults.failed == 3 + 1
    assert "\n" not in str(lost.value)
    model.reload()


@pytest.mark.slow
def test_an_engine_that_never_gets_a_call_to_its_end_ends_it_in_a_line(
    steady: SteadyModel,
    model: LanguageModel,
    endless: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inject(
        monkeypatch, lambda each: RuntimeError("long") if min(map(len, each.prompts)) > 1 else None
    )
    calls = [begin(steady, STORY, 3, banned=endless, seed=seed) for seed in range(9)]
    with pytest.raises(ModelLost, match="failed 8 times while no call came to its end, last with"):
        collect(steady, *calls)
    # Some were given up before that was known; the others are as they were.
    assert 0 < sum(bool(call.indices) for call in calls) < len(calls)
    model.reload()


def test_an_engine_that_cannot_be_loaded_again_ends_it_in_a_line(
    steady: SteadyModel, model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the driver\nis gone")

    inject(monkeypatch, at(2))
    with monkeypatch.context() as patch:
        patch.setattr(llm, "_load", broken)
        with pytest.raises(ModelLost, match=r"can't be loaded again: .*the driver is gone") as lost:
            collect(steady, begin(steady, STORY, 3))
    assert "\n" not in str(lost.value)
    assert steady.encode(STORY) == model.encode(STORY)  # the loop may ask meanwhile
    steady.close()
    model.reload()
