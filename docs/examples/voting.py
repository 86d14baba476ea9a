"""Self-consistency (Wang et al., arXiv 2203.11171): ask K times, and take what most answers say.

python docs/examples/voting.py [model=smollm2] [k=16]
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable

from engine import Engine
from engine.api.fan import siblings
from engine.api.saving import measured
from engine.inference import Sampling

SHOWN = (
    ("A box has 3 rows of 4 eggs. How many eggs?", "3 rows of 4 eggs are 3 * 4 = 12 eggs.", 12),
    ("Ann has 7 coins and loses 2. How many are left?", "7 - 2 = 5 coins are left.", 5),
    ("2 buses carry 20 people each. How many people?", "2 * 20 = 40 people.", 40),
    ("A rope of 9 m is cut into 3 parts. How long is one?", "9 / 3 = 3 m is one part.", 3),
)
QUESTION = "Tom buys 5 pens at 3 coins each and has 20 coins. How many coins are left?"

ANSWERED = "".join(f"Q: {asked}\nA: {why} The answer is {is_}.\n\n" for asked, why, is_ in SHOWN)
PROMPT = f"{ANSWERED}Q: {QUESTION}\nA:"


def sampling(k: int) -> tuple[Sampling, ...]:
    """Return how K answers are sampled."""
    return siblings(k, temperature=0.7, max_tokens=48, stop=["\n\n"])


def number_of(answer: str) -> int | None:
    """Return the number that an answer ends on; None if it comes to none."""
    found = re.search(r"answer is (-?\d+)", answer)
    return int(found[1]) if found else None


def vote(answers: Iterable[str]) -> Counter[int]:
    """Return how many answers came to each number."""
    return Counter(n for n in map(number_of, answers) if n is not None)


def main(model: str = "smollm2", k: str = "16") -> None:
    """Ask, vote, and say what asking together saved."""
    with Engine(model) as engine:
        found = measured(PROMPT, sampling(int(k)), engine=engine)
    votes = vote(each.text for each in found.answers)
    print(f"votes: {dict(votes.most_common())}")
    print(f"saving: {found}")


if __name__ == "__main__":
    main(**dict(each.split("=", 1) for each in sys.argv[1:]))
