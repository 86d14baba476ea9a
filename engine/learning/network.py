"""The model and its adapter: states from which the tokens of answers are predicted.

Three ways, which agree:
- The model's blocks are Llama-like, the adapter is on all of them: tokens are packed as a tree
  (``packing.py``), every shared token is computed once, with its gradient.
- Llama-like blocks, the adapter is on the last one: the blocks before it are run once without a
  gradient. What comes back is kept, so another pass, the model without its adapter, or another step
  on the same answers costs one block at the answers' tokens.
- Any other model: every prompt with its answer by itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.checkpoint import checkpoint

from engine.core import UserError
from engine.learning import attention
from engine.learning.adapter import attach, load_model
from engine.learning.attention import Recorder, Span, Spans, View, Windows
from engine.learning.packing import Pack, Tokens, pack
from engine.settings import LearningSettings

_TOLERANCE = 0.05  # of the states' norm, between a model's own pass and the packed one
# Two prompts that begin alike, and two siblings.
_START = tuple(range(12))
_PROBE = (
    ((*_START, 3, 1), (4, 1, 5)),
    ((*_START, 3, 1), (9, 2)),
    ((*_START, 6), (5, 3, 5)),
)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Prepared:
    """Answers as the network takes them; made by `Network.prepare`.

    Attributes:
        sequences: prompt and answer of each.
        places: for each answer, which row of `Network.states` predicts each of its tokens.
        pack: their tokens, where blocks are packed.
        spans: what the blocks before the last one made of them, where only that one is trained.
    """

    sequences: tuple[tuple[Tokens, Tokens], ...]
    places: tuple[torch.Tensor, ...]
    pack: Pack | None = None
    spans: tuple[Span, ...] = ()


class Network:
    """A model with an adapter."""

    def __init__(
        self,
        *,
        weights: Path,
        settings: LearningSettings,
        seed: int,
        device: str,
        dtype: torch.dtype,
    ) -> None:
        """Load the model and put a new adapter on it.

        Raises:
            UserError: the model can't be trained; the message says why.
        """
        attention.register()
        self._device = device
        self._model = load_model(weights, dtype=dtype, device=device)
        self._own_attention = self._model.config._attn_implementation
        size = self._model.config.get_text_config().vocab_size
        self.head: torch.Tensor = self._model.get_output_embeddings().weight[:size]
        self._check_head(weights)
        self.is_packed = self._packs()
        self.peft = attach(self._model, settings, seed=seed)
        self._is_last = settings.adapter == "last_block"
        self.parameters = tuple(each for each in self.peft.parameters() if each.requires_grad)

    @property
    def keeps_spans(self) -> bool:
        """Whether only the last block is computed for what was prepared."""
        return self.is_packed and self._is_last

    def without_adapter(self) -> AbstractContextManager[None]:
        """Return a context in which `states` are the model's own."""
        context: AbstractContextManager[None] = self.peft.disable_adapter()
        return context

    def prepare(self, sequences: Sequence[tuple[Tokens, Tokens]]) -> Prepared:
        """Take in prompts and answers."""
        sequences = tuple(sequences)
        if not self.is_packed:
            return Prepared(sequences=sequences, places=_padded_places(sequences))
        packed = pack(sequences).to(self._device)
        if not self._is_last:
            return Prepared(sequences=sequences, places=packed.places, pack=packed)
        spans = self._spans(packed)
        return Prepared(sequences=sequences, places=packed.places, spans=spans)

    def states(self, prepared: Prepared) -> torch.Tensor:
        """Return the states after the last norm that predict tokens, shape (rows, width)."""
        if prepared.spans:
            return self._last_block(prepared.spans)
        if prepared.pack is not None:
            rows = torch.cat([window.rows for window in prepared.pack.asked])
            return self._normed(self._blocks(prepared.pack)[0, rows])
        return self._padded(prepared.sequences)

    def cut(self, prepared: Prepared, index: int) -> Prepared:
        """Return one of the answers by itself, with a copy of what was computed for it."""
        sequences = (prepared.sequences[index],)
        if not prepared.spans:
            return Prepared(sequences=sequences, places=())
        starts = torch.tensor([0] + [len(span.states) for span in prepared.spans]).cumsum(0)
        places = prepared.places[index]
        number = int(torch.searchsorted(starts, places[0], right=True)) - 1
        span, rows = prepared.spans[number], places - starts[number]
        everything = torch.arange(len(span.sight.begins))
        # Of the last token: its ancestors, in order.
        seen = span.sight.part(rows[-1:], everything).mask[0]
        one = Span(
            states=span.states[rows],
            positions=span.positions[rows],
            key=span.key[:, seen].clone(),
            value=span.value[:, seen].clone(),
            sight=span.sight.part(rows, seen),
        )
        return Prepared(sequences=sequences, places=(torch.arange(len(rows)),), spans=(one,))

    def join(self, parts: Sequence[Prepared]) -> Prepared:
        """Return the answers of several parts that `cut` made, to be computed at once."""
        sequences = tuple(sequence for part in parts for sequence in part.sequences)
        if not self.keeps_spans:
            return self.prepare(sequences)
        spans = tuple(span for part in parts for span in part.spans)
        places, rows = [], 0
        for part in parts:
            places.append(part.places[0] + rows)
            rows += len(part.places[0])
        return Prepared(sequences=sequences, places=tuple(places), spans=spans)

    def _packs(self) -> bool:
        """Return whether the blocks can be run on a pack: whether that gives the same states.

        Parts with other names or arguments and states that run through a sequence show in it. A
        sliding window shows in long sequences alone, so the configuration has to say it.
        """
        if getattr(self._model.config.get_text_config(), "sliding_window", None):
            return False
        with torch.no_grad():
            own = self._padded(_PROBE)[torch.cat(_padded_places(_PROBE))]
            try:
                packed = pack(_PROBE).to(self._device)
                rows = torch.cat([window.rows for window in packed.asked])
                found = self._normed(self._blocks(packed)[0, rows])[torch.cat(packed.places)]
            except (AttributeError, TypeError, ValueError, RuntimeError):
                return False
        return bool((own - found).norm() <= _TOLERANCE * own.norm())

    def _check_head(self, weights: Path) -> None:
        """Check that logits are the states times the head, with nothing added or scaled.

        Raises:
            UserError: they are not.
        """
        self._attend_with(self._own_attention)
        ids = torch.tensor([_PROBE[0][0]], device=self._device)
        with torch.no_grad():
            own = self._model(input_ids=ids, use_cache=False).logits[0, :, : len(self.head)]
            found = self._padded([(_PROBE[0][0], (0,))]) @ self.head.T
        if (own - found).norm() > _TOLERANCE * own.norm():
            raise UserError(
                f"the model in {weights} can't be trained: it scales, bounds or shifts its "
                "logits; use learning=none or another model"
            )

    def _blocks(self, packed: Pack, *, last: bool = True) -> torch.Tensor:
        """Return what the blocks, or all but the last, make of a pack, shape (1, T, width)."""
        self._attend_with(attention.NAME)
        inner = self._model.model
        view = Windows(packed.windows)
        states = inner.embed_tokens(packed.ids[None])
        rotation = inner.rotary_emb(states, packed.positions[None])
        for block in inner.layers[: None if last else -1]:
            if torch.is_grad_enabled():  # a block's inner values are computed again on the way back
                states = checkpoint(self._block, block, states, rotation, view, use_reentrant=False)
            else:
                states = self._block(block, states, rotation, view)
        return states  # type: ignore[no-any-return]

    def _block(self, block: Any, states: torch.Tensor, rotation: Any, view: View) -> torch.Tensor:
        found: torch.Tensor = block(
            states, attention_mask=None, position_embeddings=rotation, view=view, use_cache=False
        )
        return found

    @torch.no_grad()
    def _spans(self, packed: Pack) -> tuple[Span, ...]:
        states = self._blocks(packed, last=False)
        inner, block = self._model.model, self._model.model.layers[-1]
        rotation = inner.rotary_emb(states, packed.positions[None])
        seen = Recorder()
        block.self_attn(
            hidden_states=block.input_layernorm(states),
            attention_mask=None,
            position_embeddings=rotation,
            view=seen,
        )
        return tuple(
            Span(
                states=states[0, window.rows],
                positions=packed.positions[window.rows],
                key=seen.key[:, window.keys],
                value=seen.value[:, window.keys],
                sight=window.sight,
            )
            for window in packed.asked
        )

    def _last_block(self, spans: Sequence[Span]) -> torch.Tensor:
        self._attend_with(attention.NAME)
        states = torch.cat([span.states for span in spans])[None]
        positions = torch.cat([span.positions for span in spans])[None]
        inner = self._model.model
        rotation = inner.rotary_emb(states, positions)
        return self._normed(self._block(inner.layers[-1], states, rotation, Spans(spans))[0])

    def _padded(self, sequences: Sequence[tuple[Tokens, Tokens]]) -> torch.Tensor:
        """Return states of every sequence by itself, one after the other with their padding."""
        self._attend_with(self._own_attention)
        whole = [torch.tensor(prompt + answer[:-1]) for prompt, answer in sequences]
        ids = pad_sequence(whole, batch_first=True).to(self._device)
        mask = pad_sequence([torch.ones_like(each) for each in whole], batch_first=True)
        inner = self._model.model
        blocks = getattr(inner, "layers", ()) if torch.is_grad_enabled() else ()
        with _recomputed(blocks):
            found: torch.Tensor = inner(
                input_ids=ids, attention_mask=mask.to(self._device), use_cache=False
            ).last_hidden_state
        return found.flatten(0, 1)

    def _attend_with(self, name: str) -> None:
        if self._model.config._attn_implementation != name:
            self._model.set_attn_implementation(name)

    def _normed(self, states: torch.Tensor) -> torch.Tensor:
        normed: torch.Tensor = self._model.model.norm(states)
        return normed


@contextmanager
def _recomputed(blocks: Iterable[Any]) -> Iterator[None]:
    """Have blocks keep no inner values of a pass: they are computed again on the way back."""
    for block in blocks:
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    try:
        yield
    finally:
        for block in blocks:
            del block.forward  # so that its class's own counts again


def _padded_places(sequences: Sequence[tuple[Tokens, Tokens]]) -> tuple[torch.Tensor, ...]:
    longest = max(len(prompt) + len(answer) - 1 for prompt, answer in sequences)
    return tuple(
        index * longest + len(prompt) - 1 + torch.arange(len(answer))
        for index, (prompt, answer) in enumerate(sequences)
    )
