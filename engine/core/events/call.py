"""A call to the model, and what a call that was begun on a wrong guess cost."""

from dataclasses import dataclass

from engine.core.events.event import RecordedEvent, Tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class SampledFrom:
    """What a call's children were sampled from, so that their probabilities can be computed again.

    Attributes:
        prompt_ids: the prompt's tokens. Encoding its text again may give others, because its blocks
            were encoded one by one.
        banned: tokens that no child may hold.
        grammar: EBNF that every child follows; None for none.
        schema: JSON schema that every child follows; None for none.
    """

    prompt_ids: tuple[int, ...]
    banned: tuple[int, ...] = ()
    grammar: str | None = None
    schema: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Call(RecordedEvent):
    """A prompt is about to be sent, or was sent on a guess that came true. Subject: the iteration.

    Attributes:
        island: for which it is.
        parent: id of the program to change.
        rule: by which the parent was chosen: one of the parent policy's ways, or the policy's name
            if it has a single way. It is ``repair`` where the parent is that of a failed attempt
            which the call is to correct. A call that is to try an idea of
            ``tactics.when=stagnation`` changes the best program of all islands, whatever the rule
            had drawn.
        shown: ids of the programs that the prompt shows besides the parent, in the order in which
            they are first shown: candidates, pending ones, failed attempts.
        known: how many events the log held when the prompt was composed. A search that was told
            these events, and that the candidates ``ahead`` are pending, composes it again.
        ahead: ids of candidates that the prompt shows though they were not recorded then: children
            of a guess that has come true since.
        guessed: whether it was begun before the verdicts that its parent depends on.
        partner: of a crossover: id of the program that the parent is combined with.
        repairs: of a repair: id of the failed attempt at changing the parent.
        adapter: version of the adapter that the children are sampled from; 0 for the model itself.
        guidance: id of the guidance that its children begin with: of the child before which it was
            written. None for the initial one, and in a run without guidance.
        sampled_from: what a trainer needs besides; None where nothing learns.
    """

    KIND = "call"
    NAMED_BY = ("iteration",)
    iteration: int
    island: int
    parent: str
    rule: str
    shown: tuple[str, ...] = ()
    operator: str
    k: int
    known: int
    ahead: tuple[str, ...] = ()
    guessed: bool = False
    prompt: str
    prompt_tokens: Tokens
    temperatures: tuple[float, ...]
    seeds: tuple[int, ...]
    partner: str | None = None
    repairs: str | None = None
    adapter: int = 0
    guidance: str | None = None
    sampled_from: SampledFrom | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenUp(RecordedEvent):
    """A call that was begun on a guess was given up. Subject: ``iteration.attempt``.

    Attributes:
        iteration: that it was begun for; in the same session, the call that was made instead has
            the same number.
        attempt: how many guesses for this iteration were given up before, in all sessions.
        island: for which it was.
        parent: the parent that was guessed.
        generated_tokens: of its children, all for nothing.
        prompt_tokens: of its children.
        cached_prompt_tokens: those of them whose KV was in the prefix cache.
        llm_seconds: seconds of the engine that its children took.
    """

    KIND = "given_up"
    NAMED_BY = ("iteration", "attempt")
    iteration: int
    attempt: int
    island: int
    parent: str
    generated_tokens: Tokens
    prompt_tokens: Tokens
    cached_prompt_tokens: Tokens
    llm_seconds: float
