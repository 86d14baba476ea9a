"""Programs with other numbers, found by CMA-ES, as fills."""

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial

from engine.core import Candidate, Direction
from engine.fill.maker import Idea, chance, number_of, spent, verdict_of
from engine.search.search import Search
from engine.settings import FillSettings
from engine.store import RunHistory
from engine.syntax import read
from engine.tuning import Sample, Tuner, constants_of

TUNING = "tuning"
TURN_SECONDS = 5.0
"""The evaluators' seconds after which a tuning gives way. Where programs take milliseconds it has
had its answers by then; where they take seconds, the run's first program would be tuned to its end.
"""


class Tunings:
    """Tunes the best program that it has not tuned, until CMA-ES has converged or had its answers.

    It also ends between two generations, once it has had its turn, if a program that was not tuned
    is better than all that it has found. A program that a tuning brought is not tuned again. Two
    samples that are the same program are evaluated once.
    """

    def __init__(
        self,
        search: Search,
        *,
        history: RunHistory,
        settings: FillSettings,
        seed: int,
        entry: str,
    ) -> None:
        """Go on where the recorded fills end.

        Args:
            search: knows the programs.
            history: of the run, with all fills so far.
            settings: the run's.
            seed: the run's.
            entry: the function that is called.
        """
        self._search = search
        self._entry = entry
        self._settings = settings
        self._seed = seed
        self._history = history
        fills = [each for each in history.fills.values() if each.maker == TUNING]
        self._tuned = {each.parent for each in fills}
        self._tuning: Tuning | None = None
        if fills and self._has_constants(history.program_of(fills[-1].parent)):
            last = fills[-1]
            samples = {each.sample: each for each in fills if each.parent == last.parent}
            verdicts = {
                key: verdict_of(each, search=search, history=history)
                for key, each in samples.items()
            }
            tuning = self._begun(last.parent, last.island)
            if tuning.catch_up(
                {key: each.score for key, each in verdicts.items() if each is not None},
                recorded={key: each.program.text for key, each in samples.items()},
                score_of=self._score_of,
            ):
                self._tuning = tuning

    def propose(self) -> Idea | None:
        """See `Maker`."""
        if self._tuning is None or self._tuning.is_over or self._gives_way(self._tuning):
            self._tuning = self._next()
        tuning = self._tuning
        sample = None if tuning is None else tuning.next()
        if tuning is None or sample is None:
            return None
        return Idea(
            maker=TUNING,
            parent=tuning.parent,
            island=tuning.island,
            sample=sample.number,
            make=partial(read, sample.program),
        )

    def tell(self, parent: str, sample: int, score: float | None) -> None:
        """See `Maker`."""
        if self._tuning is not None and self._tuning.parent == parent:
            self._tuning.tell(sample, score)

    def _gives_way(self, tuning: "Tuning") -> bool:
        used = spent(TUNING, self._history) - self._spent_before
        if not tuning.is_between or used < TURN_SECONDS:
            return False
        untuned = self._best_untuned()
        return untuned is not None and tuning.is_behind(untuned[0])

    def _next(self) -> "Tuning | None":
        best = self._best_untuned()
        if best is None:
            return None
        parent, island = best
        self._tuned.add(parent.id)
        return self._begun(parent.id, island)

    def _best_untuned(self) -> tuple[Candidate, int] | None:
        """Return the best program that may be tuned, and its island."""
        best = [
            (each, island)
            for island in range(self._search.islands)
            for each in self._search.best(island, most=self._settings.parents)
            if self._may_tune(each)
        ]
        key = self._search.direction.key
        return min(best, key=lambda each: key(each[0].score), default=None)

    def _may_tune(self, candidate: Candidate) -> bool:
        if candidate.id in self._tuned:
            return False
        fill = self._history.fills.get(candidate.id)
        if fill is not None and fill.maker == TUNING:
            return False
        if self._has_constants(candidate.program):
            return True
        self._tuned.add(candidate.id)
        return False

    def _has_constants(self, program: str) -> bool:
        """Return whether a program may be tuned; an earlier version may have taken more for one."""
        return bool(constants_of(program, entry=self._entry))

    def _score_of(self, text: str) -> float | None:
        """Return the score of the program that a sample repeats; None if it repeats none.

        Raises:
            KeyError: its verdict is not in.
        """
        program = read(text)
        name = None if program is None else self._search.known_as(program)
        return None if name is None else self._history.verdicts[name].score

    def _begun(self, parent: str, island: int) -> "Tuning":
        self._spent_before = spent(TUNING, self._history)
        rng = chance(self._seed, 0, number_of(parent))
        return Tuning(
            parent=parent,
            island=island,
            score=self._history.verdicts[parent].score,
            direction=self._search.direction,
            tuner=Tuner(
                self._history.program_of(parent),
                direction=self._search.direction,
                seed=int(rng.integers(2**32)),
                entry=self._entry,
            ),
            answers=self._settings.answers,
        )


class Tuning:
    """The tuning of one program: its tuner, and what was answered.

    What the tuner is told follows from the samples' numbers, their texts and what was recorded
    before them, whatever the order in which answers come: a run that goes on has the same tuning.

    Near whole numbers many samples are the program itself, or one that something else made. Their
    scores are known, and are what the tuner is told: as failures they would drive it away from the
    best that it has.
    """

    def __init__(
        self,
        *,
        parent: str,
        island: int,
        score: float | None,
        direction: Direction,
        tuner: Tuner,
        answers: int,
    ) -> None:
        """Begin with the score of the program that is tuned."""
        self.parent = parent
        self.island = island
        self._direction = direction
        self._tuner = tuner
        self._left = answers
        self._programs: dict[int, str] = {}  # of the samples that are out
        self._copies: dict[str, list[int]] = {}  # of their texts: later samples that are the same
        self._scores: dict[str, float | None] = {tuner.origin: score}  # by text
        self._drawn: deque[Sample] = deque()  # before a resume, and not recorded

    @property
    def is_over(self) -> bool:
        """Whether nothing is asked any more, and nothing is out."""
        return not self._programs and (self._tuner.is_over or self._left <= 0)

    @property
    def is_between(self) -> bool:
        """Whether a generation is over, and nothing of the next one is asked."""
        return not self._programs and not self._drawn and self._tuner.is_between

    def is_behind(self, other: Candidate) -> bool:
        """Whether another program is better than all whose scores were told."""
        scores = (each for each in self._scores.values() if each is not None)
        return all(self._direction.better(other.score, than=each) for each in scores)

    def next(self) -> Sample | None:
        """Return the next program whose score is not known; None while there is none."""
        if self._drawn:
            return self._drawn.popleft()
        while self._left > 0 and (sample := self._tuner.ask()) is not None:
            self._left -= 1
            if sample.program in self._scores:
                self._tuner.tell(sample.number, self._scores[sample.program])
            elif sample.program in self._copies:
                self._copies[sample.program].append(sample.number)
            else:
                self._programs[sample.number] = sample.program
                self._copies[sample.program] = []
                return sample
        return None

    def tell(self, number: int, score: float | None) -> None:
        """Take in a sample's score."""
        program = self._programs.pop(number)
        self._scores[program] = score
        for each in (number, *self._copies.pop(program)):
            self._tuner.tell(each, score)

    def catch_up(
        self,
        scores: Mapping[int, float | None],
        *,
        recorded: Mapping[int, str],
        score_of: Callable[[str], float | None],
    ) -> bool:
        """Ask again what was asked, and tell what is known of it; return whether that was it.

        It was not, and the tuning can't go on, where another version drew the samples.

        What was asked and not recorded repeats a program or came to nothing, unless nothing later
        was recorded either: then it is asked next. So is what repeats one without a verdict.

        Args:
            scores: by the samples' numbers.
            recorded: the programs of all that were recorded, by their numbers.
            score_of: returns the score of the program that a sample repeats, and None where it
                repeats none; raises a KeyError where the verdict is not in.
        """
        again: list[Sample] = []
        last = max(recorded)
        found = 0
        while (sample := self.next()) is not None:
            found += sample.number in recorded
            if recorded.get(sample.number, sample.program) != sample.program:
                return False
            if sample.number in scores:
                self.tell(sample.number, scores[sample.number])
            elif sample.number > last:
                again.append(sample)
            elif sample.number not in recorded:
                try:
                    score = score_of(sample.program)
                except KeyError:
                    again.append(sample)
                else:
                    self.tell(sample.number, score)
        self._drawn.extend(again)
        return found == len(recorded)
