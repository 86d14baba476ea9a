"""k-means: clusters that anyone sees, fewer vectors than clusters, none ever empty."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine.embedding import Vectors
from engine.pool.seeding import clusters


def rows(*vectors: tuple[float, ...]) -> Vectors:
    return np.array(vectors, dtype=np.float32)


def test_what_lies_together_is_a_cluster() -> None:
    """Three heaps, far apart, in turns; clusters come in the order of their first rows."""
    near = rows((0, 0), (9, 0), (0, 9), (0, 1), (9, 1), (0, 8), (1, 0), (8, 0))
    for seed in range(20):
        assert clusters(near, k=3, seed=seed) == ((0, 3, 6), (1, 4, 7), (2, 5))


def test_the_best_of_several_starts_is_taken() -> None:
    """Eight heaps in a row: a single start of k-means++ often joins two and splits another."""
    rng = np.random.default_rng(0)
    heaps = np.repeat(np.arange(8) * 10.0, 5)[:, None] + rng.uniform(-1, 1, size=(40, 1))
    expected = tuple(tuple(range(start, start + 5)) for start in range(0, 40, 5))
    found = [clusters(heaps.astype(np.float32), k=8, seed=seed) for seed in range(20)]
    assert found.count(expected) >= 19


def test_the_same_seed_gives_the_same_clusters() -> None:
    cloud = np.random.default_rng(1).normal(size=(60, 7)).astype(np.float32)
    found = [clusters(cloud, k=5, seed=seed) for seed in (3, 3, 4, 5, 6)]
    assert found[0] == found[1]
    assert len(set(found)) > 1  # there is more than one way to part a cloud
    np.random.seed(0)
    state = np.random.get_state()[1]
    clusters(cloud, k=5, seed=3)
    np.testing.assert_array_equal(np.random.get_state()[1], state)


small = st.integers(-2, 2).map(float)


@given(
    st.integers(1, 12).flatmap(lambda n: arrays(np.float32, (n, 2), elements=small)),
    st.integers(1, 8),
    st.integers(0, 3),
)
def test_every_row_is_in_one_cluster_and_none_is_empty(vectors: Vectors, k: int, seed: int) -> None:
    """Few different vectors, often fewer than clusters, many of them equal."""
    found = clusters(vectors, k=k, seed=seed)
    assert len(found) == min(k, len(np.unique(vectors, axis=0)))
    assert all(found)
    assert sorted(row for each in found for row in each) == list(range(len(vectors)))
    assert [each[0] for each in found] == sorted(min(each) for each in found)


def test_a_cluster_that_k_means_leaves_empty_gets_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.pool.seeding._RESTARTS", 1)  # or another start would be taken
    cloud = rows(
        *((3, 0), (-1, -1), (-7, 7), (3, 3), (6, 3)),
        *((-6, 5), (-2, 5), (6, -5), (6, -7), (3, -6)),
    )
    found = clusters(cloud, k=5, seed=0)  # found by trying: k-means leaves the first one empty
    assert len(found) == 5
    assert all(found)
    assert sorted(row for each in found for row in each) == list(range(10))


def test_fewer_vectors_than_clusters_are_a_cluster_each() -> None:
    assert clusters(rows((0, 1), (1, 0)), k=5, seed=0) == ((0,), (1,))
    assert clusters(rows((0, 1), (0, 1), (0, 1)), k=2, seed=0) == ((0, 1, 2),)
    assert clusters(np.zeros((0, 4), np.float32), k=3, seed=0) == ()
    assert clusters(np.zeros((3, 0), np.float32), k=2, seed=0) == ((0, 1, 2),)
