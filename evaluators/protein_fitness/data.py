"""Measured fitness of protein variants: the reader of MULTI-evolve's benchmark, and stand-ins.

The reader expects a folder laid out like ``data/benchmark`` of the MULTI-evolve repository, with
the data sets (12 of them, made from ProteinGym and later work) from its Zenodo record:

``dataset_summary.csv``
    one row for each data set; of its columns ``DMS_id`` (a name), ``DMS_filename`` and
    ``target_seq`` (the wild type, in the 20 one-letter codes of amino acids) are read;
``datasets/<DMS_filename>``
    one row for each variant; its columns ``mutant`` and ``DMS_score`` are read. A mutant is
    written like ``A40P:E61Y``: wild-type letter, position from 1, new letter, separated by ``:``
    or ``/``; ``WT`` or an empty entry is the wild type. A larger score is a fitter variant. Scores
    of rows with the same mutations are averaged.

Files are comma-separated UTF-8 with a header; columns may come in any order and others are
skipped. The original files were not to be had where this was written: the reader has only ever
been run on generated files with this schema.

Does not cover proteins of several chains, nor the split into training and test variants
(``evaluator``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.core import UserError
from evaluators.table import parse_number, read_rows

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
"""The letter of each amino acid code, which are the numbers 0 to 19."""

SEED = 20250711
"""Seed of the generated data that stand in for the original ones."""

Sequences = NDArray[np.int8]
_MUTATION = re.compile(rf"([{AMINO_ACIDS}])([0-9]{{1,6}})([{AMINO_ACIDS}])")


@dataclass(frozen=True, kw_only=True, slots=True)
class Protein:
    """The measured variants of one protein, in an order that says nothing of their fitness.

    No two have the same mutations.

    Attributes:
        name: names it in messages.
        wild_type: amino acid codes, shape (length,).
        sequences: amino acid codes of the variants, shape (n, length), sorted by their mutations.
        fitness: what was measured of each, shape (n,), in the unit of the data set.
    """

    name: str
    wild_type: Sequences
    sequences: Sequences
    fitness: NDArray[np.float64]


Mutations = tuple[tuple[int, int], ...]
"""What sets a variant apart: (position from 0, new amino acid code), sorted."""


def assemble(
    name: str, wild_type: Sequences, variants: Sequence[tuple[Mutations, float]]
) -> Protein:
    """Return the protein with ``variants``, each given by its mutations and its fitness.

    The fitness of a variant that was measured more than once is the mean of its measurements.
    """
    measured: dict[Mutations, list[float]] = {}
    for mutations, value in variants:
        measured.setdefault(mutations, []).append(value)
    order = sorted(measured)  # a file may be sorted by fitness, which would give it away
    sequences = np.repeat(wild_type[None, :], len(order), axis=0)
    for row, mutations in zip(sequences, order, strict=True):
        for position, code in mutations:
            row[position] = code
    # Divided first, as a sum may overflow; fsum, so that the rows' order shows in no digit.
    repeats = (measured[mutations] for mutations in order)
    means = [math.fsum(value / len(values) for value in values) for values in repeats]
    fitness = np.array(means, dtype=np.float64)
    return Protein(name=name, wild_type=wild_type, sequences=sequences, fitness=fitness)


def read_proteins(folder: Path) -> Iterator[Protein]:
    """Yield the proteins of ``folder``, which is laid out as the module's docstring says.

    Raises:
        UserError: a file is missing or malformed; the message names the line.
    """
    summary = folder / "dataset_summary.csv"
    if not summary.is_file():
        raise UserError(f"{folder} has no dataset_summary.csv; give MULTI-evolve's data/benchmark")
    for line, (name, filename, letters) in read_rows(
        summary, ("DMS_id", "DMS_filename", "target_seq")
    ):
        if not letters or set(letters) - set(AMINO_ACIDS):
            raise UserError(
                f"{summary}, line {line}: target_seq must be a string of the letters {AMINO_ACIDS}"
            )
        wild_type = np.array([AMINO_ACIDS.index(letter) for letter in letters], dtype=np.int8)
        path = folder / "datasets" / filename
        yield assemble(name, wild_type, list(_read_variants(path, letters)))


def _read_variants(path: Path, letters: str) -> Iterator[tuple[Mutations, float]]:
    for line, (mutant, score) in read_rows(path, ("mutant", "DMS_score")):
        fitness = parse_number(score, path=path, line=line, column="DMS_score")
        try:
            yield _parse_mutant(mutant, letters), fitness
        except ValueError as error:
            raise UserError(f"{path}, line {line}: mutant is {mutant!r}; {error}") from error


def _parse_mutant(mutant: str, letters: str) -> Mutations:
    """Return the mutations of ``mutant``; those that change nothing are left out."""
    if mutant in ("", "WT"):
        return ()
    codes: dict[int, int] = {}
    for part in re.split("[:/]", mutant):
        match = _MUTATION.fullmatch(part)
        if match is None:
            raise ValueError("write it like A40P:E61Y, or WT for the wild type")
        old, position, new = match[1], int(match[2]) - 1, match[3]
        if not 0 <= position < len(letters) or letters[position] != old:
            raise ValueError(f"the wild type has no {old} at position {position + 1}")
        if position in codes:
            raise ValueError(f"it names position {position + 1} twice")
        codes[position] = AMINO_ACIDS.index(new)
    return tuple(sorted((p, code) for p, code in codes.items() if AMINO_ACIDS[code] != letters[p]))


def generate_proteins(seed: int = SEED) -> list[Protein]:
    """Return four made-up proteins that differ in length and in how strongly mutations interact."""
    rng = np.random.default_rng(seed)
    return [
        _generate(rng, f"generated {i}", length=length, sites=sites, epistasis=epistasis)
        for i, (length, sites, epistasis) in enumerate(
            [(60, 10, 0.2), (90, 12, 0.5), (120, 14, 0.8), (150, 16, 1.1)]
        )
    ]


def _generate(
    rng: np.random.Generator,
    name: str,
    *,
    length: int,
    sites: int,
    epistasis: float,
    doubles: int = 160,
    higher: int = 250,
) -> Protein:
    """Return a protein with two mutations at each of ``sites`` positions.

    The latent fitness of a variant is the sum of its mutations' own effects and, for 30 % of the
    pairs, of an interaction of standard deviation ``epistasis``; what is measured is its sigmoid
    with a little noise. All singles are measured, and random doubles and mutants of order 3 to 7.
    """
    wild_type = rng.integers(0, 20, length).astype(np.int8)
    positions = np.sort(rng.choice(length, sites, replace=False)).repeat(2)  # (mutations,)
    codes = (wild_type[positions] + np.tile([1, 2], sites) * rng.integers(1, 10)) % 20
    count = positions.size
    effects = rng.normal(-0.1, 0.7, count)
    pairs = rng.normal(0.0, epistasis, (count, count)) * (rng.random((count, count)) < 0.3)
    variants: dict[Mutations, float] = {}

    def measure(chosen: NDArray[np.int64]) -> None:
        latent = effects[chosen].sum() + np.triu(pairs[np.ix_(chosen, chosen)], 1).sum()
        measured = 1.0 / (1.0 + np.exp(-latent)) + rng.normal(0.0, 0.02)
        variants[tuple((int(positions[i]), int(codes[i])) for i in chosen)] = float(measured)

    measure(np.empty(0, dtype=np.int64))
    for i in range(count):
        measure(np.array([i]))
    for order in [2] * doubles + list(rng.integers(3, 8, higher)):
        of_site = rng.choice(sites, order, replace=False)
        measure(np.sort(2 * of_site + rng.integers(0, 2, order)))
    return assemble(name, wild_type, list(variants.items()))
