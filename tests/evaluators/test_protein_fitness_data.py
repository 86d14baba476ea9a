"""Protein variants: the folder reader on generated files, the generator, and the split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from engine.core import UserError
from evaluators.protein_fitness.data import (
    AMINO_ACIDS,
    Mutations,
    Protein,
    assemble,
    generate_proteins,
    read_proteins,
)
from evaluators.protein_fitness.evaluator import split, with_data

SUMMARY = "DMS_id,DMS_filename,UniProt_ID,target_seq,seq_len"
WILD_TYPE = "ACDEFG"


def letters(codes: np.ndarray) -> str:
    return "".join(AMINO_ACIDS[code] for code in codes)


def mutant(protein: Protein, sequence: np.ndarray, separator: str = ":") -> str:
    old, new = letters(protein.wild_type), letters(sequence)
    changed = [f"{old[i]}{i + 1}{new[i]}" for i in range(len(old)) if old[i] != new[i]]
    return separator.join(changed) or "WT"


def write_benchmark(folder: Path, proteins: list[Protein], separator: str = ":") -> Path:
    """Write a folder with the layout of MULTI-evolve's data/benchmark, best variants first."""
    (folder / "datasets").mkdir(parents=True)
    summary = [SUMMARY]
    for protein in proteins:
        name = protein.name.replace(" ", "_")
        target = letters(protein.wild_type)
        summary.append(f"{protein.name},{name}.csv,X,{target},{len(target)}")
        rows = ["mutant,mutated_sequence,DMS_score,DMS_score_bin"]
        for i in np.argsort(-protein.fitness):
            sequence = protein.sequences[i]
            written = mutant(protein, sequence, separator)
            rows.append(f"{written},{letters(sequence)},{float(protein.fitness[i])!r},1")
        (folder / "datasets" / f"{name}.csv").write_text("\n".join(rows) + "\n")
    (folder / "dataset_summary.csv").write_text("\n".join(summary) + "\n")
    return folder


def small(folder: Path, rows: list[str], target: str = WILD_TYPE) -> Path:
    """Write a benchmark of one data set with ``rows`` of mutant and score."""
    (folder / "datasets").mkdir()
    (folder / "dataset_summary.csv").write_text(f"{SUMMARY}\none,one.csv,X,{target},6\n")
    text = "\n".join(["mutant,DMS_score", *rows]) + "\n"
    (folder / "datasets" / "one.csv").write_text(text)
    return folder


@pytest.mark.parametrize("separator", [":", "/"])
def test_a_written_folder_reads_back(tmp_path: Path, separator: str) -> None:
    given = generate_proteins(3)
    folder = write_benchmark(tmp_path / "benchmark", given, separator)
    for got, expected in zip(read_proteins(folder), given, strict=True):
        assert got.name == expected.name
        assert_array_equal(got.wild_type, expected.wild_type)
        assert_array_equal(got.sequences, expected.sequences)  # though the file has another order
        assert_array_equal(got.fitness, expected.fitness)
    evaluator = with_data(folder)
    assert [task.name for task in evaluator.tasks] == [protein.name for protein in given]


def test_mutants_are_read_against_the_wild_type(tmp_path: Path) -> None:
    rows = ["WT,1", ",2", "A1C,3", "C2A/G6Y,4", "A1A:G6Y,5"]
    (protein,) = read_proteins(small(tmp_path, rows))
    read = {(letters(s), f) for s, f in zip(protein.sequences, protein.fitness, strict=True)}
    assert read == {
        ("ACDEFG", 1.5),  # measured twice
        ("CCDEFG", 3),
        ("AADEFY", 4),
        ("ACDEFY", 5),  # A1A changes nothing
    }


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("A1,1", "'A1'; write it like A40P:E61Y"),
        ("A1C:,1", "write it like"),
        ("A1X,1", "write it like"),
        ("A1*,1", "write it like"),
        ("a1c,1", "write it like"),
        ("C1A,1", "no C at position 1"),
        ("A7C,1", "no A at position 7"),
        ("A0C,1", "no A at position 0"),
        ("A1C:A1D,1", "names position 1 twice"),
        ("A1C,", "DMS_score is ''"),
        ("A1C,inf", "DMS_score is 'inf'"),
        ("A1C", "1 values in a file of 2 columns"),
    ],
)
def test_malformed_rows_give_one_line(tmp_path: Path, row: str, message: str) -> None:
    folder = small(tmp_path, ["WT,1", row])
    with pytest.raises(UserError, match=message) as caught:
        with_data(folder)
    assert f"{folder / 'datasets' / 'one.csv'}, line 3: " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("target", ["", "ACX", "acd"])
def test_a_target_sequence_must_be_amino_acids(tmp_path: Path, target: str) -> None:
    with pytest.raises(UserError, match=r"dataset_summary\.csv, line 2: target_seq must be"):
        with_data(small(tmp_path, ["WT,1"], target))


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no dataset_summary\.csv"):
        with_data(tmp_path)
    folder = small(tmp_path, ["WT,1"])
    (folder / "datasets" / "one.csv").unlink()
    with pytest.raises(UserError, match=r"one\.csv can't be read"):
        with_data(folder)
    (folder / "dataset_summary.csv").write_text(SUMMARY + "\n")
    with pytest.raises(UserError, match="names no data set"):
        with_data(folder)


def protein(*variants: tuple[Mutations, float]) -> Protein:
    return assemble("one", np.zeros(8, dtype=np.int8), variants)


SINGLES = [(((p, 1),), 0.1 * p) for p in range(8)]
TRIPLES = [(((0, 1), (1, 1), (p, 1)), float(p)) for p in range(2, 8)] + [
    (((1, 1), (2, 1), (p, 1)), float(p)) for p in range(3, 8)
]


def test_the_split_is_by_the_number_of_mutations() -> None:
    double = (((0, 1), (3, 1)), 0.5)
    task = split(protein(((), 0.0), double, *SINGLES, *TRIPLES))
    assert_array_equal(np.bincount(np.count_nonzero(task.train_sequences, axis=1)), [1, 8, 1])
    assert set(np.count_nonzero(task.test_sequences, axis=1)) == {3}
    assert task.test_fitness.shape == (11,)


def test_variants_with_a_mutation_not_measured_alone_take_no_part() -> None:
    elsewhere = [(((0, 1), (3, 2)), 9.0), (((0, 1), (1, 1), (3, 2)), 9.0)]
    task = split(protein(*elsewhere, *SINGLES, *TRIPLES))
    assert 9.0 not in task.train_fitness and 9.0 not in task.test_fitness
    assert task.train_fitness.size == 8


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        (TRIPLES, "one has no wild type, single or double mutant"),
        ([*SINGLES, *TRIPLES[:9]], "one has 9 variants of three or more .* it needs 10"),
        ([*SINGLES, *((m, 1.0) for m, _ in TRIPLES)], "one has the same fitness"),
    ],
)
def test_data_that_can_not_be_scored_are_refused(
    variants: list[tuple[Mutations, float]], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        split(protein(*variants))


def test_the_order_of_the_rows_says_nothing() -> None:
    one, other = protein(*SINGLES, *TRIPLES), protein(*TRIPLES[::-1], *SINGLES[::-1])
    assert_array_equal(one.sequences, other.sequences)
    assert_array_equal(one.fitness, other.fitness)


def test_repeated_measurements_are_averaged_whatever_their_order() -> None:
    mutations = (((0, 1),), ((0, 1), (1, 1)))
    rows = [(each, value) for each in mutations for value in (0.1, 0.7, 1e-17, 0.2)]
    one, other = protein(*rows), protein(*rows[::-1])
    assert_array_equal(one.sequences[:, :3], [[1, 0, 0], [1, 1, 0]])
    assert one.fitness == pytest.approx([0.25, 0.25], rel=1e-15)
    assert_array_equal(one.fitness, other.fitness)
    assert protein(*[((), 1.7e308)] * 3).fitness == pytest.approx([1.7e308])


def test_the_generator_is_seeded_and_leaves_the_global_one_alone() -> None:
    np.random.seed(3)
    expected = np.random.rand()
    np.random.seed(3)
    one, again, other = generate_proteins(1), generate_proteins(1), generate_proteins(2)
    assert np.random.rand() == expected
    assert_array_equal(one[0].fitness, again[0].fitness)
    assert not np.array_equal(one[0].wild_type, other[0].wild_type)


def test_generated_proteins_are_what_the_docstring_says() -> None:
    for given, sites in zip(generate_proteins(), (10, 12, 14, 16), strict=True):
        changed = given.sequences != given.wild_type
        assert changed.any(axis=0).sum() == sites
        orders = np.bincount(changed.sum(axis=1))
        assert (orders[0], orders[1], orders.size) == (1, 2 * sites, 8)
        assert -0.1 < given.fitness.min() < given.fitness.max() < 1.1
        task = split(given)
        assert task.train_fitness.size + task.test_fitness.size == given.fitness.size
