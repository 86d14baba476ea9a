"""An agent's parallel plans: from one context, K plans of tool calls; the best one is carried out.

An agent's context (what it may call, what it has seen) is long, and a plan is short. So most of the
work is the context, which a fan-out computes once.

    python docs/examples/tool_plans.py [model=smollm2] [k=16]
"""

import re
import sys

from engine import Engine
from engine.api.fan import siblings
from engine.api.saving import measured
from engine.inference import Sampling

TOOLS = {
    "list_files": "list_files(folder): the names of the files in a folder",
    "read_file": "read_file(path): the text of a file",
    "search": "search(word): the paths of all files that hold a word",
    "run_tests": "run_tests(path): whether a test file passes, and its output",
    "edit_file": "edit_file(path): change a file",
}
SEEN = "\n".join(f"tests/test_{name}.py: passed" for name in ("io", "core", "cache", "net", "log"))
PROMPT = f"""You are an agent that repairs programs. You may call these tools:
{chr(10).join(TOOLS.values())}

What was seen so far:
{SEEN}
tests/test_clock.py: failed, NameError: name 'tick' is not defined in src/clock.py

Task: make all tests pass. Write a plan, one call on each line.

Plan for a failure in src/math.py, seen in tests/test_math.py:
read_file("src/math.py")
edit_file("src/math.py")
run_tests("tests/test_math.py")

Plan for a failure in src/clock.py, seen in tests/test_clock.py:
"""


def sampling(k: int) -> tuple[Sampling, ...]:
    """Return how K plans are sampled."""
    return siblings(k, temperature=0.8, max_tokens=64, stop=["\n\n"])


def plan_of(answer: str) -> list[str]:
    """Return the calls of a plan, up to the first line that is none."""
    calls: list[str] = []
    for line in answer.strip().splitlines():
        found = re.fullmatch(r"(\w+)\((.*)\)", line.strip())
        if found is None or found[1] not in TOOLS:
            break
        calls.append(line.strip())
    return calls


def worth(plan: list[str]) -> float:
    """Return how good a plan looks: it reads, edits and tests the right files, and is short."""
    steps = ('read_file("src/clock.py")', 'edit_file("src/clock.py")', "run_tests(")
    places = [next((i for i, call in enumerate(plan) if call.startswith(s)), -1) for s in steps]
    in_order = places == sorted(places) and places[0] >= 0
    return sum(place >= 0 for place in places) + in_order - 0.1 * len(plan)


def main(model: str = "smollm2", k: str = "16") -> None:
    """Ask for plans, take the best, and say what asking together saved."""
    with Engine(model) as engine:
        found = measured(PROMPT, sampling(int(k)), engine=engine)
    plans = [plan_of(each.text) for each in found.answers]
    best = max(plans, key=worth)
    print(f"{len(set(map(tuple, plans)))} different plans; the best:")
    print("\n".join(f"  {call}" for call in best) or "  none")
    print(f"saving: {found}")


if __name__ == "__main__":
    main(**dict(each.split("=", 1) for each in sys.argv[1:]))
