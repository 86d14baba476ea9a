"""Which tokens an answer could be drawn from, token by token.

The sampler forbids what the grammar does not allow, then adds -100 to the logit of each banned
token, then divides by the temperature (vLLM 0.32: the runner's grammar mask, then
``v1/sample/sampler.py``). The same is done here with the same library, so that the trainer's
log-probabilities are those of the distribution that a token came from.

Does not cover ``top_p``, ``top_k`` and ``min_p``: a run that learns has to leave them off.
"""

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xgrammar

from engine.core import SampledFrom
from engine.learning.group import Answer

BANNED = -100.0
"""What is added to a banned token's logit, as at sampling; it is never quite impossible."""
_GRAMMARS = 64  # that are kept compiled
_SUPPORTS = 1024  # that are kept
_CACHE_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """What one token could be drawn from. Equal ones are the same object.

    Attributes:
        allowed: the tokens that the grammar allows, ascending, shape (n,); None for all.
        banned: of these, which are banned, as indices into them.
    """

    allowed: torch.Tensor | None
    banned: torch.Tensor

    @property
    def is_forced(self) -> bool:
        """Whether there was no choice."""
        return self.allowed is not None and len(self.allowed) == 1

    def index(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return which of the allowed tokens each of ``tokens`` is."""
        return tokens if self.allowed is None else torch.searchsorted(self.allowed, tokens)


class Masks:
    """Follows answers through their grammars."""

    def __init__(self, *, weights: Path, vocabulary: int) -> None:
        """Read the tokenizer.

        Args:
            weights: folder of the model.
            vocabulary: how many logits the model has.
        """
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(weights, local_files_only=True)
        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=vocabulary)
        self._compiler = xgrammar.GrammarCompiler(
            info, max_threads=1, cache_enabled=True, cache_limit_bytes=_CACHE_BYTES
        )
        self._stops = _stop_tokens(weights, tokenizer.eos_token_id)
        self._vocabulary = vocabulary
        self._bits = xgrammar.allocate_token_bitmask(1, vocabulary)
        self._compiled: OrderedDict[tuple[str | None, str | None], Any] = OrderedDict()
        self._supports: dict[tuple[bytes, tuple[int, ...]], Support] = {}

    def supports(self, answer: Answer) -> list[Support]:
        """Return what each token of an answer was drawn from.

        Shorter than the answer if the grammar refuses one of its tokens: that one and what follows
        were not drawn from anything that is known here.
        """
        source = answer.sampled_from
        matcher = self._matcher(source)
        if matcher is None:
            return [self._support(b"", source.banned)] * len(answer.token_ids)
        found = []
        for token in answer.token_ids:
            if matcher.is_terminated():
                found.append(self._support(b"", source.banned))
                continue
            matcher.fill_next_token_bitmask(self._bits)
            if not matcher.accept_token(token):
                break
            found.append(self._support(self._bits.numpy().tobytes(), source.banned))
        return found

    def forget(self) -> None:
        """Drop supports if there are many; to be called between two steps."""
        if len(self._supports) > _SUPPORTS:
            self._supports.clear()

    def _matcher(self, source: SampledFrom) -> Any:
        key = (source.grammar, source.schema)
        if key == (None, None):
            return None
        if key not in self._compiled:
            self._compiled[key] = self._compile(*key)
        self._compiled.move_to_end(key)
        if len(self._compiled) > _GRAMMARS:
            self._compiled.popitem(last=False)
        return xgrammar.GrammarMatcher(
            self._compiled[key], override_stop_tokens=self._stops or None
        )

    def _compile(self, grammar: str | None, schema: str | None) -> Any:
        if grammar is not None:
            return self._compiler.compile_grammar(grammar)
        # White space as vLLM's xgrammar backend has it by default.
        return self._compiler.compile_json_schema(schema or "{}", any_whitespace=True)

    def _support(self, bits: bytes, banned: Sequence[int]) -> Support:
        key = (bits, tuple(banned))
        if key not in self._supports:
            self._supports[key] = self._read(bits, key[1])
        return self._supports[key]

    def _read(self, bits: bytes, banned: tuple[int, ...]) -> Support:
        outcast = np.unique(np.array(banned, dtype=np.int64))
        if not bits:
            return Support(None, torch.from_numpy(outcast))
        flags = np.unpackbits(np.frombuffer(bits, dtype=np.uint8), bitorder="little")
        allowed = np.flatnonzero(flags[: self._vocabulary])
        if len(allowed) == self._vocabulary:
            return Support(None, torch.from_numpy(outcast))
        return Support(
            torch.from_numpy(allowed), torch.from_numpy(np.flatnonzero(np.isin(allowed, outcast)))
        )


def _stop_tokens(weights: Path, end: int | None) -> list[int]:
    """Return the tokens that end an answer: the tokenizer's, and the generation config's."""
    stops = set() if end is None else {end}
    try:
        own = json.loads((weights / "generation_config.json").read_text(encoding="utf-8"))
        more = own.get("eos_token_id")
    except (OSError, ValueError, AttributeError):  # many models come with none
        more = None
    if more is not None:
        stops |= {more} if isinstance(more, int) else set(more)
    return sorted(stops)
