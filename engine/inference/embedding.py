"""A program's vector from the served model: the mean of its last hidden states.

The mean over all of the text's tokens, of the text alone, without a chat or a prompt round it,
scaled to length 1. A text that leaves no room for a sampled token is cut at its end.

Mean hidden states of a language model lie close together: with SmolLM2-135M-Instruct the initial
programs of the shipped problems have cosines of 0.91 to 1.00 with each other, and one with a
constant changed over 0.999 with itself, so a threshold that tells near-copies has to be chosen for
a model. In a run the decoder's thread steps the model, so texts are embedded there, beside the
calls that decode (`DecoderEmbedder`). Does not cover keeping vectors:
``engine.embedding.KeptEmbeddings``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from engine.embedding import Embedder, Vectors, directions
from engine.inference.decoder import Decoder


@runtime_checkable
class HiddenStatesModel(Protocol):
    """What the embedder needs of `engine.inference.LanguageModel`."""

    max_model_len: int
    hidden_size: int

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text``."""

    def mean_hidden_states(self, prompts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the mean of each prompt's last hidden states, shape (n, hidden_size)."""


class ModelEmbedder:
    """Makes vectors with the weights that decode; see `LanguageModel.mean_hidden_states`."""

    def __init__(self, model: HiddenStatesModel) -> None:
        """Take the model; `embed` has to be called where its steps are run."""
        self._model = model

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""
        return self._model.hidden_size

    def embed(self, programs: Sequence[str]) -> Vectors:
        """Return a vector for each program, shape (len(programs), dimensions).

        An empty text has the vector 0.
        """
        most = self._model.max_model_len - 1
        prompts = {row: self._model.encode(text)[:most] for row, text in enumerate(programs)}
        prompts = {row: token_ids for row, token_ids in prompts.items() if token_ids}
        result = np.zeros((len(programs), self.dimensions), np.float32)
        if prompts:
            result[list(prompts)] = self._model.mean_hidden_states(list(prompts.values()))
        return directions(result)


class DecoderEmbedder:
    """Has another embedder make its vectors in a decoder's thread, and waits for them."""

    def __init__(self, embedder: Embedder, decoder: Decoder) -> None:
        """Take an embedder of the decoder's model."""
        self._embedder = embedder
        self._decoder = decoder

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""
        return self._embedder.dimensions

    def embed(self, programs: Sequence[str]) -> Vectors:
        """Return a vector for each program, shape (len(programs), dimensions).

        Raises:
            BaseException: see `Decoder.run`.
        """
        return self._decoder.run(lambda: self._embedder.embed(programs))
