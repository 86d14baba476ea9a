"""What a token could be drawn from, and its log-probability and gradient."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn.functional import log_softmax

from engine.learning.group import Answer
from engine.learning.head import divergences, draws, log_probabilities
from engine.learning.masks import Masks

Answered = Callable[..., Answer]
DIGIT = 'root ::= " "? [0-9] ("." [0-9])? "\\n"'


@pytest.fixture(scope="module")
def masks(tiny: Path) -> Masks:
    return Masks(weights=tiny, vocabulary=257)


def letters(masks: Masks, answer: Answer, encode: Callable[[str], tuple[int, ...]]) -> list[object]:
    names = {encode(letter)[0]: letter for letter in " .0123456789\n"} | {256: "<end>"}
    return [
        None if each.allowed is None else {names[token] for token in each.allowed.tolist()}
        for each in masks.supports(answer)
    ]


def test_a_grammar_is_followed(
    masks: Masks, answered: Answered, encode: Callable[[str], tuple[int, ...]]
) -> None:
    answer = answered("x =", " 1.5\n", grammar=DIGIT)
    digits = set("0123456789")
    expected = [digits | {" "}, digits, {".", "\n"}, digits, {"\n"}]
    assert letters(masks, answer, encode) == expected
    assert [each.is_forced for each in masks.supports(answer)] == [False] * 4 + [True]


def test_the_end_of_an_answer_is_allowed_where_the_grammar_ends(
    masks: Masks, answered: Answered
) -> None:
    answer = answered("x", "1", grammar='root ::= "1" "2"?')
    ended = Answer(
        sampled_from=answer.sampled_from,
        temperature=1.0,
        token_ids=(*answer.token_ids, 256),
        logprobs=(),
    )
    supports = masks.supports(ended)
    assert len(supports) == 2
    assert supports[1].allowed is not None and 256 in supports[1].allowed.tolist()
    assert len(supports[1].allowed) == 2


def test_what_a_grammar_refuses_is_left_out(masks: Masks, answered: Answered) -> None:
    assert len(masks.supports(answered("x =", "1.x\n", grammar=DIGIT))) == 2


def test_a_schema_allows_white_space(
    masks: Masks, answered: Answered, encode: Callable[[str], tuple[int, ...]]
) -> None:
    schema = '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}'
    supports = masks.supports(answered("x", '{ "a": 1}', schema=schema))
    assert len(supports) == 9
    assert supports[1].allowed is not None
    assert set(encode(' \n"')) <= set(supports[1].allowed.tolist())


def test_equal_supports_are_one(masks: Masks, answered: Answered) -> None:
    one, other = (masks.supports(answered(p, "1\n", grammar=DIGIT)) for p in ("x", "y"))
    assert one[0] is other[0]
    banned = masks.supports(answered("x", "1\n", grammar=DIGIT, banned=(5,)))
    assert one[0] is not banned[0]


def test_log_probabilities_and_gradients_are_those_of_the_whole_distribution(
    masks: Masks, answered: Answered, encode: Callable[[str], tuple[int, ...]]
) -> None:
    """Reference: every logit, forbidden ones at minus infinity, through autograd."""
    torch.manual_seed(1)
    head = torch.randn(257, 8)
    ban = encode("1")[0]
    answers = [
        answered("x", " 1\n", grammar=DIGIT, temperature=0.7),
        answered("x", " 2\n", grammar=DIGIT, banned=(ban,), temperature=1.3),
        answered("x", "abc", banned=(ban, 7)),
        answered("x", "d", temperature=0.0),
    ]
    supports = [each for answer in answers for each in masks.supports(answer)]
    tokens = torch.tensor([token for answer in answers for token in answer.token_ids])
    heats = torch.tensor([a.temperature for a in answers for _ in a.token_ids])
    bans = [a.sampled_from.banned for a in answers for _ in a.token_ids]
    rows = torch.arange(len(tokens)).flip(0)
    chosen = draws(supports, rows=rows, tokens=tokens, temperatures=heats)
    weights = torch.randn(len(tokens))

    hidden = torch.randn(len(tokens), 8, requires_grad=True)
    found, entropy = log_probabilities(hidden, head, chosen)
    (found * weights).sum().backward()
    gradient = hidden.grad

    def whole(states: torch.Tensor) -> torch.Tensor:
        logits = states[rows] @ head.T
        for row, support in enumerate(supports):
            if support.allowed is not None:
                forbidden = torch.ones(257, dtype=torch.bool)
                forbidden[support.allowed] = False
                logits[row, forbidden] = -torch.inf
            for token in bans[row]:
                logits[row, token] -= 100
        return log_softmax(logits / torch.where(heats == 0, 1.0, heats)[:, None], dim=-1)

    again = hidden.detach().clone().requires_grad_()
    logprobs = whole(again)
    expected = logprobs.gather(1, tokens[:, None])[:, 0]
    (expected * weights).sum().backward()
    assert torch.allclose(found, expected, atol=1e-5)
    assert gradient is not None and again.grad is not None
    assert torch.allclose(gradient, again.grad, atol=1e-5)
    terms = logprobs.exp() * logprobs
    assert torch.allclose(entropy, -terms.nan_to_num().sum(dim=-1), atol=1e-5)

    base = torch.randn(len(tokens), 8)
    own = whole(base)
    sums = divergences(hidden, base, head, chosen)
    gap = (logprobs - own).nan_to_num()
    assert sums[0].item() == pytest.approx((logprobs.exp() * gap).sum().item(), rel=1e-4)
    assert sums[1].item() == pytest.approx(entropy.sum().item(), rel=1e-4)
    expected_own = -(own.exp() * own).nan_to_num().sum().item()
    assert sums[2].item() == pytest.approx(expected_own, rel=1e-4)
