"""Folders of runs: settings, stores, timelines, summaries, sweeps, adapters, steering files."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

import yaml

from bench.fuzz.mutations import VALUES, any_bytes, any_text, any_tree
from bench.fuzz.target import Target, WrongError
from engine import config
from engine.cluster.last_nodes import LastNodes
from engine.core import (
    INITIAL,
    Call,
    Child,
    Direction,
    Evaluation,
    Event,
    Failure,
    Hint,
    Seed,
    Session,
    UserError,
    Verdict,
)
from engine.dashboard.run import WatchedRun
from engine.problem import shipped
from engine.report.analysis import read_runs, record_of
from engine.report.tables import overview
from engine.report.tables.programs import of_run
from engine.settings import RunSettings
from engine.steering import Request, decoded, leave
from engine.steering.requests import FOLDER, take
from engine.store import EventLog, create_run, read_log, replay
from engine.store.form import decode, encode
from engine.sweep.plan import Planned, Sweep, read_sweep
from engine.syntax import read
from engine.timeline import TIMELINE, Activity, Timeline, read_events

_FAR = float("inf")


def _events() -> list[Event]:
    text = "def f(x):\n    return x\n"
    call = Call(
        iteration=0,
        island=0,
        parent=INITIAL,
        rule="elite",
        operator="infill",
        k=1,
        known=0,
        guessed=False,
        prompt="a prompt",
        prompt_tokens=100,
        temperatures=(0.5,),
        seeds=(1,),
    )
    child = Child(
        id="0.0",
        iteration=0,
        index=0,
        parent=INITIAL,
        operator="infill",
        completion="return 2 * x",
        completion_ids=(1, 2, 3),
        finish_reason="stop",
        program=read(text.replace("x\n", "2 * x\n")),
        refusal=None,
        prompt_tokens=100,
        cached_prompt_tokens=80,
        llm_seconds=0.5,
    )
    good = Evaluation(score=0.5, failure=None, seconds=0.25, metrics={"a": float("inf")})
    bad = Evaluation(score=None, failure=Failure.ERROR, message="it failed", artifacts={"a": "b"})
    return [
        Session(number=0, engine="0", fingerprint="f"),
        Verdict(candidate=INITIAL, evaluation=good, program=text),
        Seed(number=0, source="pool/a.py", program=text, islands=(0,)),
        call,
        child,
        Verdict(candidate=child.id, evaluation=bad),
        Hint(number=0, text="try less"),
    ]


def _settings() -> RunSettings:
    return config.resolve([f"problem.path={shipped()['signal']}", "model=mutation"])


def _made(folder: Path) -> Path:
    """Return the folder of a small run."""
    settings = _settings()
    create_run(folder, write_config=lambda to: config.save(settings, to), events=_events())
    return folder


class _Reader:
    """Reads a run as reports and a resume do; settings that do not change are read once."""

    def __init__(self) -> None:
        self._settings = _settings()

    def read(self, folder: Path) -> None:
        record = record_of(
            name="run",
            settings=self._settings,
            direction=Direction.MAXIMISE,
            events=read_log(folder),
            folder=folder,
        )
        overview([record])
        of_run(record)
        with EventLog(folder) as log:
            replay(log.events(), Direction.MAXIMISE, name=folder)


class Settings(Target):
    name = "config.yaml"
    reads = "engine/config, engine/settings"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "config.yaml"
        self._tree = asdict(_settings())
        self._text = yaml.safe_dump(self._tree, sort_keys=False)
        # Parts alone are refused, but sooner, so more of them are read.
        self._parts = [yaml.safe_dump({k: v}) for k, v in self._tree.items()]

    def draw(self, rng: Random) -> bytes:
        chance = rng.random()
        if chance < 0.15:
            text = yaml.dump(any_tree(rng, self._tree, _YAML))
        elif chance < 0.3:
            text = any_text(rng, self._text, self._parts)
        else:
            text = any_text(rng, rng.choice(self._parts), self._parts)
        data = text.encode(errors="surrogatepass")
        return data if rng.random() < 0.9 else any_bytes(rng, data)

    def feed(self, given: bytes) -> None:
        self._path.write_bytes(given)
        config.load(self._path)


_YAML = tuple(each for each in VALUES if each != "\ud800")


class Sweeps(Target):
    name = "sweep.yaml"
    reads = "engine/sweep/plan.py"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        run = Planned(name="seed=1", varied={"seed": "1"}, settings=_settings())
        Sweep(folder=folder, runs=(run,)).write()
        self._path = folder / "sweep.yaml"
        self._text = self._path.read_text(encoding="utf-8")
        self._short = yaml.safe_dump({"runs": [{**asdict(run), "settings": {"seed": 1}}]})

    def draw(self, rng: Random) -> bytes:
        text = any_text(rng, self._text if rng.random() < 0.1 else self._short, [self._short])
        data = text.encode(errors="surrogatepass")
        return data if rng.random() < 0.9 else any_bytes(rng, data)

    def feed(self, given: bytes) -> None:
        self._path.write_bytes(given)
        read_sweep(self._folder)


class Events(Target):
    name = "event"
    reads = "engine/store/form.py"
    share = 2
    refusals = (KeyError, ValueError)  # which the log tells as damage

    def __init__(self, folder: Path) -> None:
        self._samples = [(each.KIND, json.loads(encode(each))) for each in _events()]

    def draw(self, rng: Random) -> tuple[str, str]:
        kind, tree = rng.choice(self._samples)
        text = json.dumps(any_tree(rng, tree))
        return kind, text if rng.random() < 0.7 else any_text(rng, text)

    def feed(self, given: tuple[str, str]) -> None:
        event = decode(*given)
        if decode(event.KIND, encode(event)) != event and "nan" not in given[1].lower():
            raise WrongError(f"{event!r:.200} is another event when it is written again")


class Stores(Target):
    name = "run.db, its bytes"
    reads = "engine/store, engine/report, engine/dashboard/run.py"

    def __init__(self, folder: Path) -> None:
        self._reader = _Reader()
        self._run = _made(folder / "run")
        with closing(sqlite3.connect(self._run / "run.db")) as db:
            db.execute("PRAGMA journal_mode=DELETE")
        self._sample = (self._run / "run.db").read_bytes()

    def draw(self, rng: Random) -> bytes:
        return any_bytes(rng, self._sample, [self._sample])

    def feed(self, given: bytes) -> None:
        for name in ("run.db-wal", "run.db-shm"):
            (self._run / name).unlink(missing_ok=True)
        (self._run / "run.db").write_bytes(given)
        self._reader.read(self._run)


class Rows(Target):
    name = "run.db, its rows"
    reads = "engine/store, engine/report, engine/dashboard/run.py"

    def __init__(self, folder: Path) -> None:
        self._reader = _Reader()
        self._run = _made(folder / "run")
        self._path = self._run / "run.db"
        with closing(sqlite3.connect(self._path)) as db:
            db.execute("PRAGMA journal_mode=DELETE")
            self._rows = db.execute("SELECT seq, session, elapsed, kind, subject, body FROM events")
            self._rows = self._rows.fetchall()
            self._count = len(self._rows)
        self._sample = self._path.read_bytes()

    def draw(self, rng: Random) -> list[tuple[int, str, Any]]:
        changes: list[tuple[int, str, Any]] = []
        for _ in range(rng.choice((1, 1, 2, 4))):
            row = rng.randrange(self._count)
            column = rng.choice(("body", "body", "body", "session", "elapsed", "kind", "subject"))
            if column == "body":
                tree = any_tree(rng, json.loads(self._rows[row][5]))
                value: Any = json.dumps(tree).encode(errors="replace").decode()
            else:
                odd = ("x", "", None, -1, 2**62, 1e300, -0.5, b"\xff\0", "child", "0.0", "verdict")
                value = rng.choice(odd)
            changes.append((row + 1, column, value))
        if rng.random() < 0.1:
            changes.append((rng.randrange(self._count) + 1, "", None))
        return changes

    def feed(self, given: list[tuple[int, str, Any]]) -> None:
        self._path.write_bytes(self._sample)
        with closing(sqlite3.connect(self._path, isolation_level=None)) as db:
            db.execute("PRAGMA synchronous=OFF")
            db.execute("BEGIN")
            for seq, column, value in given:
                try:
                    if column:
                        db.execute(f"UPDATE events SET {column} = ? WHERE seq = ?", (value, seq))
                    else:
                        db.execute("DELETE FROM events WHERE seq = ?", (seq,))
                except sqlite3.IntegrityError:  # the table keeps that out itself
                    continue
            db.execute("COMMIT")
        self._reader.read(self._run)


class Timelines(Target):
    name = "timeline.json"
    reads = "engine/timeline.py"
    share = 1

    def __init__(self, folder: Path) -> None:
        self._path = folder / TIMELINE
        with Timeline(self._path) as timeline:
            for number in range(3):
                timeline.model.begin(Activity.STEP, iteration=number)
                timeline.evaluator(number).add(Activity.EVALUATE, 0.01)
        self._sample = self._path.read_bytes()
        lines = self._sample.splitlines()[1:]
        self._trees = [json.loads(line.removesuffix(b",")) for line in lines]

    def draw(self, rng: Random) -> bytes:
        if rng.random() < 0.5:
            return any_bytes(rng, self._sample, [self._sample])
        trees = [any_tree(rng, rng.choice(self._trees)) for _ in range(3)]
        return b"[\n" + b"".join(json.dumps(each).encode() + b",\n" for each in trees)

    def feed(self, given: bytes) -> None:
        self._path.write_bytes(given)
        first = [*read_events(self._path)]
        if given and len(given) % 8 == 0:  # a thread and a file: dearer than reading
            with Timeline(self._path):
                pass
            if [*read_events(self._path)][: len(first)] != first:
                raise WrongError("going on with a timeline has changed what it held")
        if not first:
            raise UserError("it holds nothing")


class Summaries(Target):
    name = "summary.json, machines.json"
    reads = "engine/report/analysis/runs.py, engine/sweep/plan.py, engine/cluster/last_nodes.py"

    def __init__(self, folder: Path) -> None:
        gone = str(folder / "gone")
        settings = replace(_settings(), runs=str(folder), name="run", problem=gone)
        self._planned = Planned(name="run", varied={}, settings=settings)
        self._run = _made(folder / "run")
        config.save(settings, self._run / "config.yaml")
        self._tree = {"direction": "maximise", "features": [], "ended_by": "candidates"}
        self._tree["features"] = [{"name": "a", "low": 0.0, "high": 1.0, "bins": 3}]

    def draw(self, rng: Random) -> bytes:
        text = json.dumps(any_tree(rng, self._tree))
        return any_text(rng, text).encode(errors="replace") if rng.random() < 0.3 else text.encode()

    def feed(self, given: bytes) -> None:
        for name in ("summary.json", "machines.json"):
            (self._run / name).write_bytes(given)
        LastNodes(self._run).get(0)
        self._planned.summary()
        if len(given) % 16 == 0:  # they read the settings too, which takes long
            watched = WatchedRun("run", self._run)
            watched.refresh(deadline=_FAR)
            read_runs([self._run])


class Requests(Target):
    name = "steering file"
    reads = "engine/steering"
    share = 1

    def __init__(self, folder: Path) -> None:
        self._run = folder
        (folder / FOLDER).mkdir()
        kinds: Sequence[Any] = ("pause", "resume", "stop", "hint")
        self._samples = [Request(kind=kind, text="try é\nless").encoded() for kind in kinds]

    def draw(self, rng: Random) -> bytes:
        if rng.random() < 0.5:
            tree = any_tree(rng, json.loads(rng.choice(self._samples)))
            return json.dumps(tree, ensure_ascii=False).encode(errors="surrogatepass")
        return any_bytes(rng, rng.choice(self._samples), self._samples)

    def feed(self, given: bytes) -> None:
        (self._run / FOLDER / "000000.json").write_bytes(given)
        taken = [*take(self._run, refused=set())]
        if [*(self._run / FOLDER).iterdir()]:
            raise WrongError("it was not removed")
        request = decoded(given)  # raises if it is none
        if taken != [request]:
            raise WrongError(f"{taken} was taken for {request}")
        if decoded(request.encoded()) != request:
            raise WrongError(f"{request} is another one when it is left again")
        if len(given) % 32 == 0:
            leave(self._run, request)
            shutil.rmtree(self._run / FOLDER)
            (self._run / FOLDER).mkdir()


class Checkpoints(Target):
    name = "adapters"
    reads = "engine/learning/adapter.py, trainer.py"

    def __init__(self, folder: Path) -> None:
        import torch
        from tokenizers import Tokenizer, models
        from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

        from engine.learning.trainer import Trainer

        weights, self._folder = folder / "weights", folder / "000001"
        shape = LlamaConfig(
            vocab_size=32,
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            tie_word_embeddings=True,
            eos_token_id=1,
            bos_token_id=1,
        )
        LlamaForCausalLM(shape).save_pretrained(weights)
        tokenizer = Tokenizer(models.BPE(vocab={chr(65 + n): n for n in range(32)}, merges=[]))
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="B").save_pretrained(weights)
        settings = replace(config.resolve(["learning=mean_baseline"]).learning, rank=8)
        self._trainer = Trainer(
            weights=weights, settings=settings, seed=0, device="cpu", dtype=torch.float32
        )
        self._trainer.save(self._folder)
        self._samples = {path.name: path.read_bytes() for path in self._folder.iterdir()}

    def draw(self, rng: Random) -> tuple[str, bytes]:
        name = rng.choice(sorted(self._samples))
        return name, any_bytes(rng, self._samples[name], [*self._samples.values()])

    def feed(self, given: tuple[str, bytes]) -> None:
        name, data = given
        for each, sample in self._samples.items():
            (self._folder / each).write_bytes(sample)
        (self._folder / name).write_bytes(data)
        self._trainer.load(self._folder)


TARGETS = (*(Settings, Sweeps, Events, Stores, Rows, Timelines, Summaries, Requests, Checkpoints),)
