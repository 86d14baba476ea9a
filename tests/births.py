"""Children and the calls that made them, by what a test wants to say of them."""

from __future__ import annotations

from engine.core import INITIAL, Call, Child, Program


def made_call(
    iteration: int,
    *,
    island: int = 0,
    operator: str = "rewrite",
    parent: str = INITIAL,
    partner: str | None = None,
    repairs: str | None = None,
    k: int = 4,
) -> Call:
    """Return a call."""
    return Call(
        iteration=iteration,
        island=island,
        parent=parent,
        rule="elite",
        operator=operator,
        k=k,
        known=0,
        prompt="",
        prompt_tokens=0,
        temperatures=(1.0,) * k,
        seeds=(0,) * k,
        partner=partner,
        repairs=repairs,
    )


def born(
    *,
    id: str,
    program: Program | None,
    iteration: int,
    index: int = 0,
    island: int = 0,
    parent: str = INITIAL,
    operator: str = "rewrite",
    answer: str = "",
    answer_ids: tuple[int, ...] = (),
    partner: str | None = None,
    repairs: str | None = None,
    k: int = 4,
) -> tuple[Child, Call]:
    """Return an admitted child and its call."""
    child = Child(
        id=id,
        iteration=iteration,
        index=index,
        parent=parent,
        operator=operator,
        completion=answer,
        completion_ids=answer_ids,
        finish_reason="stop",
        program=program,
        refusal=None,
        prompt_tokens=0,
        cached_prompt_tokens=0,
        llm_seconds=0.0,
    )
    call = made_call(
        iteration,
        island=island,
        operator=operator,
        parent=parent,
        partner=partner,
        repairs=repairs,
        k=k,
    )
    return child, call
