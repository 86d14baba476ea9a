"""What can be said of a problem's evaluator that is a process of its own."""

from collections.abc import Iterator

from engine.checking.finding import Finding, doubtful, good
from engine.core import Judge, JudgeKind
from engine.judge.setup import Setup


def check_judge(judge: Judge) -> Iterator[Finding]:
    """Check whether another system's evaluator is split from the program, as it was rehearsed."""
    if judge.kind is JudgeKind.COMMAND:
        return
    setup = Setup.from_json(judge.setup)
    if judge.kind is JudgeKind.TOGETHER:
        yield doubtful(
            "isolation",
            f"{setup.joined_by}; so evaluator and program run together, and a program can change "
            "its score",
            where="",
            remedy="see docs/peers.md; evaluation.strict=true refuses it",
        )
        return
    yield good("isolation", "the evaluator runs split from the program")
    if setup.objects:
        yield doubtful(
            "objects",
            f"the evaluator believes what the program's objects answer: {', '.join(setup.objects)}",
            where=setup.evaluator,
            remedy="let the program return numbers, texts, lists or arrays",
        )
