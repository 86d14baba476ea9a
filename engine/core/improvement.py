"""ImprovEvolve's contract, as a problem declares it."""

from dataclasses import dataclass

IMPROVE, PERTURB = "improve", "perturb"
"""The functions that a program may define besides the problem's entry point."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Improvement:
    """Solutions that a program can improve, given one (Kravatskiy et al., 2026, section 3).

    The source's program proposes, improves and perturbs. Here the problem's entry point proposes,
    and a program may define two functions more; ``SOLUTION`` are the solution's arrays:

    - ``improve(SOLUTION, effort, seed)`` returns what the entry point returns;
    - ``perturb(SOLUTION, intensity, seed)`` returns the arrays of another solution, in their order.
      The intensity is above 0 and at most 1.

    Attributes:
        solution: the outputs of the problem's only case that make a solution, by name; in a tuple
            that a program returns they are the first ones.
        effort: how much longer ``improve`` may take than in an evaluation, where it is 1.
    """

    solution: tuple[str, ...]
    effort: int
