"""Many prompts and answers as one row of tokens, in which each distinct start stands once.

The prompts of an update begin alike (the task, the parent), siblings have the whole prompt in
common, and many answers begin alike or are equal. So they are laid out as a tree: a token's
ancestors are what stood before it. Linear layers see one long row. Attention goes window by window:
a window's queries see those of the window's keys that are their ancestors.

Covers: the layout. Does not cover the computation: ``network.py``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

Tokens = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Sight:
    """Which keys queries see: their own token and its ancestors.

    A walk through the tree of tokens comes to a token, then to all that go on from it, and then
    leaves it. So a query sees the keys that the walk has come to and not left. That takes n + m
    numbers, where a mask that is kept would take n m.

    Attributes:
        moments: when the walk comes to each query, shape (n,).
        begins: when it comes to each key, shape (m,).
        ends: when it has left it, shape (m,).
    """

    moments: torch.Tensor
    begins: torch.Tensor
    ends: torch.Tensor

    @property
    def mask(self) -> torch.Tensor:
        """Which key a query sees, shape (n, m)."""
        moments = self.moments[:, None]
        return (self.begins <= moments) & (moments < self.ends)

    def part(self, rows: torch.Tensor, keys: torch.Tensor) -> "Sight":
        """Return that of some of the queries and of some of the keys."""
        return Sight(moments=self.moments[rows], begins=self.begins[keys], ends=self.ends[keys])

    def to(self, device: str) -> "Sight":
        """Return it on another device."""
        return Sight(
            moments=self.moments.to(device),
            begins=self.begins.to(device),
            ends=self.ends.to(device),
        )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Window:
    """Queries that share their keys.

    Attributes:
        rows: places of the queries in the row of tokens, shape (n,).
        keys: places of the keys, in the order of their positions, shape (m,).
        sight: which key a query sees.
    """

    rows: torch.Tensor
    keys: torch.Tensor
    sight: Sight

    def to(self, device: str) -> "Window":
        """Return it on another device."""
        return Window(
            rows=self.rows.to(device), keys=self.keys.to(device), sight=self.sight.to(device)
        )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pack:
    """The row of tokens.

    Attributes:
        ids: its T tokens.
        positions: of each in its own sequence, shape (T,).
        windows: for all tokens, in their order.
        asked: for the tokens that predict a token of an answer, one window a prompt.
        places: for each answer, which of the asked tokens (numbered through all windows) predicts
            each of its tokens. All first tokens of a prompt's answers are predicted at one place.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    windows: tuple[Window, ...]
    asked: tuple[Window, ...]
    places: tuple[torch.Tensor, ...]

    def to(self, device: str) -> "Pack":
        """Return it on another device; `places` stay where they are."""
        return replace(
            self,
            ids=self.ids.to(device),
            positions=self.positions.to(device),
            windows=tuple(window.to(device) for window in self.windows),
            asked=tuple(window.to(device) for window in self.asked),
        )


def pack(sequences: Sequence[tuple[Tokens, Tokens]]) -> Pack:
    """Lay prompts and answers out.

    Args:
        sequences: prompt and answer of each; both have at least one token.
    """
    row = _Row()
    prompts = sorted({prompt for prompt, _ in sequences})
    ends = dict(row.prompts(prompts))
    answers: dict[Tokens, list[int]] = {prompt: [] for prompt in prompts}
    for index, (prompt, _) in enumerate(sequences):
        answers[prompt].append(index)
    asked, places, asked_tokens = [], {}, 0
    for prompt in prompts:
        window, each = row.answers(ends[prompt], [sequences[index][1] for index in answers[prompt]])
        asked.append(window)
        for index, rows in zip(answers[prompt], each, strict=True):
            places[index] = torch.tensor(rows) + asked_tokens
        asked_tokens += len(window.rows)
    return Pack(
        ids=torch.tensor(row.ids),
        positions=torch.tensor(row.positions),
        windows=tuple(row.windows),
        asked=tuple(asked),
        places=tuple(places[index] for index in range(len(sequences))),
    )


def split_padded(
    sequences: Sequence[tuple[Tokens, Tokens]], *, most_tokens: int
) -> Iterator[tuple[int, ...]]:
    """Share sequences out to batches in which each is padded to the longest, as nothing is packed.

    Those of about one length come together.

    Args:
        sequences: prompt and answer of each.
        most_tokens: of a batch with more than one sequence, what they are padded with among them.

    Yields:
        indices of the sequences of one batch; at least one.
    """
    lengths = [len(prompt) + len(answer) for prompt, answer in sequences]
    chosen: list[int] = []
    for index in sorted(range(len(sequences)), key=lengths.__getitem__):  # the next is the longest
        if chosen and (len(chosen) + 1) * lengths[index] > most_tokens:
            yield tuple(chosen)
            chosen = []
        chosen.append(index)
    if chosen:
        yield tuple(chosen)


def split(
    sequences: Sequence[tuple[Tokens, Tokens]], *, most_tokens: int
) -> Iterator[tuple[int, ...]]:
    """Share sequences out to packs. Siblings stay together as far as there is room.

    Args:
        sequences: prompt and answer of each.
        most_tokens: of a pack with more than one answer. What prompts or answers have in common is
            not counted, but for a prompt that is common to all of a pack.

    Yields:
        indices of the sequences of one pack; at least one.
    """
    together: dict[Tokens, list[int]] = {}
    for index, (prompt, _) in enumerate(sequences):
        together.setdefault(prompt, []).append(index)
    chosen: list[int] = []
    tokens = 0
    for prompt, indices in sorted(together.items()):  # those that begin alike are neighbours
        answers = {index: len(sequences[index][1]) for index in indices}
        for part, more in _siblings(answers, prompt=len(prompt), most_tokens=most_tokens):
            if chosen and tokens + more > most_tokens:
                yield tuple(chosen)
                chosen, tokens = [], 0
            chosen += part
            tokens += more
    if chosen:
        yield tuple(chosen)


def _siblings(
    answers: Mapping[int, int], *, prompt: int, most_tokens: int
) -> Iterator[tuple[list[int], int]]:
    """Share the answers to one prompt out, since attention between them grows with their square.

    Args:
        answers: tokens of each, by index.
        prompt: its tokens.
        most_tokens: of the prompt with more than one answer.

    Yields:
        indices, at least one, and the tokens of these answers and the prompt.
    """
    part: list[int] = []
    tokens = prompt
    for index, more in answers.items():
        if part and tokens + more > most_tokens:
            yield part, tokens
            part, tokens = [], prompt
        part.append(index)
        tokens += more
    yield part, tokens


class _Row:
    """The row while it is written."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.positions: list[int] = []
        self.windows: list[Window] = []

    def prompts(
        self, prompts: Sequence[Tokens], path: Tokens = ()
    ) -> Iterator[tuple[Tokens, Tokens]]:
        """Write sorted distinct prompts that begin alike up to ``path``.

        Yields:
            each prompt, and the places of its tokens.
        """
        start = len(path)
        for group in _by_token(prompts, start):
            stop = _alike(group[0], group[-1])
            here = path + self._write(group[0][start:stop], start)
            self._window(here[start:], here, _causal(stop - start, stop))
            if len(group[0]) == stop:
                yield group[0], here
                group = group[1:]
            yield from self.prompts(group, here)

    def answers(self, path: Tokens, answers: Sequence[Tokens]) -> tuple[Window, list[list[int]]]:
        """Write the answers to the prompt at ``path``, without tokens that predict nothing.

        Returns:
            the window of what predicts, and for each answer which of it predicts each token: 0 is
            the prompt's end.
        """
        children: dict[
            tuple[int, int], int
        ] = {}  # (node, token) to node; node 0 is the prompt's end
        parents, depths, tokens, places = [-1], [0], [0], []
        for answer in answers:
            place = [0]
            for token in answer[:-1]:
                node = children.setdefault((place[-1], token), len(parents))
                if node == len(parents):
                    parents.append(place[-1])
                    depths.append(depths[place[-1]] + 1)
                    tokens.append(token)
                place.append(node)
            places.append(place)
        rows = tuple(range(len(self.ids), len(self.ids) + len(parents) - 1))
        self.ids += tokens[1:]
        self.positions += [len(path) - 1 + depth for depth in depths[1:]]
        sight = _of_tree(parents, before=len(path) - 1)
        if rows:
            self._window(rows, path + rows, replace(sight, moments=sight.moments[1:]))
        keys = torch.tensor(path + rows)
        return Window(rows=keys[len(path) - 1 :], keys=keys, sight=sight), places

    def _write(self, tokens: Tokens, position: int) -> Tokens:
        place = len(self.ids)
        self.ids += tokens
        self.positions += range(position, position + len(tokens))
        return tuple(range(place, len(self.ids)))

    def _window(self, rows: Tokens, keys: Tokens, sight: Sight) -> None:
        window = Window(rows=torch.tensor(rows), keys=torch.tensor(keys), sight=sight)
        self.windows.append(window)


def _by_token(prompts: Sequence[Tokens], place: int) -> Iterable[list[Tokens]]:
    groups: dict[int, list[Tokens]] = {}
    for prompt in prompts:
        groups.setdefault(prompt[place], []).append(prompt)
    found: Mapping[int, list[Tokens]] = groups
    return found.values()


def _alike(first: Tokens, last: Tokens) -> int:
    """Return with how many equal tokens two prompts begin."""
    for place, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return place
    return min(len(first), len(last))


def _causal(queries: int, keys: int) -> Sight:
    """Return what the last tokens of a sequence see of it."""
    moments = torch.arange(keys)
    return Sight(
        moments=moments[keys - queries :], begins=moments, ends=torch.full_like(moments, keys)
    )


def _of_tree(parents: Sequence[int], *, before: int) -> Sight:
    """Return what the nodes of a tree see of a sequence, all of which they see, and of the tree.

    Args:
        parents: of each node, which stand before it; -1 for the first node, the root.
        before: tokens of the sequence.
    """
    sizes = [1] * len(parents)  # of the node and all that go on from it
    for node in range(len(parents) - 1, 0, -1):
        sizes[parents[node]] += sizes[node]
    begins, free = [before], [before + 1]  # `free`: where the walk comes to a node's next child
    for node in range(1, len(parents)):
        parent = parents[node]
        begins.append(free[parent])
        free.append(free[parent] + 1)
        free[parent] += sizes[node]
    moments = torch.tensor(begins)
    path = torch.arange(before)
    return Sight(
        moments=moments,
        begins=torch.cat([path, moments]),
        ends=torch.cat(
            [torch.full_like(path, before + len(parents)), moments + torch.tensor(sizes)]
        ),
    )
