"""Reading a grammar as vLLM does: what it lets through, and what a model without a mind writes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import xgrammar

_END = 256


@functools.cache
def _compiled(grammar: str) -> Any:
    """Compile a grammar for a model whose tokens are the bytes, and an end."""
    vocabulary = [bytes([value]) for value in range(_END)] + [b"</s>"]
    info = xgrammar.TokenizerInfo(vocabulary, stop_token_ids=[_END])
    return xgrammar.GrammarCompiler(info, cache_enabled=False).compile_grammar(grammar)


def accepts(grammar: str, text: str) -> bool:
    """Whether ``text`` is a whole sentence of the grammar."""
    matcher = xgrammar.GrammarMatcher(_compiled(grammar), terminate_without_stop_token=True)
    return bool(matcher.accept_string(text)) and bool(matcher.is_terminated())


def sentence(grammar: str, seed: int) -> str:
    """Return a random sentence: of a model to which all bytes are equally likely."""
    rng = np.random.default_rng(seed)
    matcher = xgrammar.GrammarMatcher(_compiled(grammar), terminate_without_stop_token=True)
    mask = xgrammar.allocate_token_bitmask(1, _END + 1)
    written = bytearray()
    while not matcher.is_terminated():
        matcher.fill_next_token_bitmask(mask)
        allowed = np.flatnonzero(np.unpackbits(mask.numpy().view(np.uint8), bitorder="little"))
        token = int(rng.choice(allowed[allowed < _END]))
        assert matcher.accept_token(token)
        written.append(token)
    return written.decode(errors="replace")  # a grammar may let through halves of a character
