"""Kept embeddings: each text is embedded once, the last ones asked for stay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from engine.embedding import KeptEmbeddings, NGramEmbedder, Vectors, directions


class Recorded:
    """The model-free embedder, and what it was asked."""

    dimensions = 32

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def embed(self, programs: Sequence[str]) -> Vectors:
        self.asked.append(list(programs))
        return NGramEmbedder(dimensions=self.dimensions).embed(programs)


def test_each_text_is_embedded_once_and_all_new_ones_together() -> None:
    inner = Recorded()
    kept = KeptEmbeddings(inner, most=10)
    first = kept.embed(["a = 1", "b = 2", "a = 1"])
    again = kept.embed(["b = 2", "c = 3", "a = 1"])
    assert inner.asked == [["a = 1", "b = 2"], ["c = 3"]]
    np.testing.assert_array_equal(first, NGramEmbedder(dimensions=32).embed(["a=1", "b=2", "a=1"]))
    np.testing.assert_array_equal(again, NGramEmbedder(dimensions=32).embed(["b=2", "c=3", "a=1"]))
    assert kept.dimensions == 32


def test_those_asked_for_last_stay() -> None:
    inner = Recorded()
    kept = KeptEmbeddings(inner, most=2)
    kept.embed(["a = 1", "b = 2"])
    kept.embed(["a = 1"])
    kept.embed(["c = 3"])  # b goes
    kept.embed(["a = 1", "c = 3"])
    kept.embed(["b = 2"])
    assert inner.asked == [["a = 1", "b = 2"], ["c = 3"], ["b = 2"]]


def test_more_than_are_kept_may_be_asked_for_at_once() -> None:
    inner = Recorded()
    kept = KeptEmbeddings(inner, most=2)
    texts = [f"a = {number}" for number in range(5)]
    np.testing.assert_array_equal(kept.embed(texts), NGramEmbedder(dimensions=32).embed(texts))
    kept.embed(texts[3:])
    assert len(inner.asked) == 1


def test_a_caller_that_changes_its_rows_changes_none_that_are_kept() -> None:
    kept = KeptEmbeddings(Recorded(), most=2)
    kept.embed(["a = 1"])[:] = 0
    kept.embed(["a = 1"])[:] = 0
    assert kept.embed(["a = 1"]).any()


def test_nothing_asked_nothing_embedded() -> None:
    inner = Recorded()
    assert KeptEmbeddings(inner, most=1).embed([]).shape == (0, 32)
    assert inner.asked == []


def test_most_is_checked() -> None:
    with pytest.raises(ValueError, match="most is 0"):
        KeptEmbeddings(Recorded(), most=0)


def test_directions_have_length_1_but_for_zeros() -> None:
    found = directions(np.array([[3.0, 4.0], [0.0, 0.0], [1e30, 0.0]]))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [1, 0]], rtol=1e-7)
