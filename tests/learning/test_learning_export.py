"""``engine.export``: its rows, and that trainers outside read them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from recorded import FATES, call_of, make_run

from engine.export import main

Exported = Callable[..., list[dict[str, Any]]]
FORMATS = ("groups", "sft", "dpo", "kto")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run that learned, and one that did not."""
    folder = tmp_path_factory.mktemp("runs")
    return {
        "learned": make_run(
            folder / "learned",
            [*call_of(0), *call_of(1, adapter=2), *call_of(2, [(None, FATES[4][1])])],
            "learning=grpo",
        ),
        "plain": make_run(folder / "plain", call_of(0, learns=False)),
    }


@pytest.fixture
def exported(runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Exported:
    """Return a function that exports runs, and returns the rows that ``datasets`` reads."""

    def export(
        form: str, *names: str, suffix: str = "parquet", **more: str
    ) -> list[dict[str, Any]]:
        out = tmp_path / f"{form}.{suffix}"
        folders = [str(runs[name]) for name in names]
        options = [f"{key}={value}" for key, value in more.items()]
        assert main([*folders, f"format={form}", f"out={out}", *options]) == 0
        rows = list(read(out))
        assert capsys.readouterr().out == f"{len(rows)} rows in {out}\n"
        assert [path.name for path in tmp_path.iterdir()] == [out.name]
        out.unlink()
        return rows

    return export


def read(path: Path) -> Any:
    from datasets import Dataset

    cache = str(path.with_name("cache")) + "-of-datasets"
    reader = Dataset.from_parquet if path.suffix == ".parquet" else Dataset.from_json
    found = reader(str(path), cache_dir=cache, keep_in_memory=True)
    shutil.rmtree(cache)
    return found


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("names", [("learned",), ("plain",), ("learned", "plain")])
def test_both_kinds_of_files_hold_the_same(
    exported: Exported, form: str, names: tuple[str, ...]
) -> None:
    rows = exported(form, *names)
    assert rows == exported(form, *names, suffix="jsonl")
    assert rows


def test_a_group_has_an_entry_for_each_child_that_was_judged(
    exported: Exported, runs: dict[str, Path]
) -> None:
    first, second, third, plain = exported("groups", "learned", "plain")
    assert (second["run"], second["iteration"], second["adapter"]) == (str(runs["learned"]), 1, 2)
    assert (first["prompt"], first["prompt_ids"], first["banned"]) == ("prompt 0: ", [1, 2, 0], [5])
    assert (first["grammar"], first["schema"]) == ('root ::= "x"', None)
    assert first["parent"] == "initial" and first["parent_score"] == 0.5
    assert first["rewards"] == pytest.approx([0.5, 0.5, 0.225, 0.0, 0.0])
    assert first["scores"] == [0.75, None, 0.25, None, None]
    assert first["refusals"] == [None, "duplicate", None, None, "unparsed"]
    assert first["failures"] == [None, None, None, "error", None]
    assert first["completions"][0] == "x = 1\n"
    assert first["completion_ids"][1] == [7, 9, 9]
    assert first["logprobs"][1] == [-0.5, -1.25, -1.5]
    assert first["temperatures"] == [0.5, 0.625, 0.75, 0.875, 1.0]
    assert third["rewards"] == [0.0]
    assert plain["prompt_ids"] is None and plain["logprobs"] == [[]] * 5


def test_examples_have_the_exact_tokens_where_all_runs_recorded_them(exported: Exported) -> None:
    rows = exported("sft", "learned")
    assert [row["completion"] for row in rows] == ["x = 1\n", "x = 2\n"] * 2
    assert rows[0] == {
        "prompt": "prompt 0: ",
        "completion": "x = 1\n",
        "input_ids": [1, 2, 0, 7, 8, 9],
        "labels": [-100, -100, -100, 7, 8, 9],
        "reward": 0.5,
    }
    mixed = exported("sft", "learned", "plain")
    assert len(mixed) == 6
    assert {tuple(row) for row in mixed} == {("prompt", "completion", "reward")}


@pytest.mark.parametrize("reward", ["rank", "target"])
def test_a_pair_is_of_two_programs(exported: Exported, reward: str) -> None:
    first, second = exported("dpo", "learned", reward=reward)
    assert first["chosen"] == "x = 1\n"
    assert first["rejected"] == "x = 3\n"
    assert first["chosen_reward"] > first["rejected_reward"]
    assert second["prompt"] == "prompt 1: "


def test_a_copy_of_a_good_answer_is_not_called_bad(exported: Exported) -> None:
    rows = exported("kto", "plain")
    assert [(row["completion"], row["label"]) for row in rows] == [
        ("x = 1\n", True),
        ("x = 2\n", True),
        ("x = 3\n", False),
        ("nothing", False),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{run}", "out=a.parquet"], "format is ''; it must be one of groups, sft, dpo, kto"),
        (["{run}", "format=rlhf", "out=a.parquet"], "format is 'rlhf'; it must be one of"),
        (["{run}", "format=sft"], "out is ''; it must be a file that ends in .parquet or .jsonl"),
        (["{run}", "format=sft", "out=a.csv"], "out is 'a.csv'; it must be a file that ends in"),
        (["format=sft", "out=a.jsonl"], "give at least one run's folder"),
        (["nowhere", "format=sft", "out=a.jsonl"], "nowhere is not a run"),
        (["{run}", "format=sft", "out=no/a.jsonl"], "no/a.jsonl can't be written: "),
        (["{run}", "format=sft", "out=no/a.parquet"], "no/a.parquet can't be written: "),
        (
            ["{run}", "format=sft", "out={file}/a.jsonl"],
            "a.jsonl can't be written: Not a directory",
        ),
        (["{run}", "format=sft", "out={file}/a.parquet"], "a.parquet can't be written: Not a dir"),
        (["{run}", "{run}/", "format=sft", "out=a.jsonl"], "is given twice; a run counts once"),
        (["{run}", "format=sft", "out=a.jsonl", "reward=best"], "reward is 'best'; it must be"),
        (["{empty}", "format=sft", "out=a.jsonl"], "the runs hold nothing for format=sft"),
    ],
)
def test_bad_input_is_a_line(
    runs: dict[str, Path],
    recorded_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    folders = {"run": runs["plain"], "empty": recorded_run, "file": recorded_run / "run.db"}
    given = [each.format(**folders) for each in arguments]
    assert main(given) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert words in err
    assert list(here.iterdir()) == []


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """A run whose problem is nowhere."""
    run = make_run(tmp_path / "moved", call_of(0))
    values = yaml.safe_load((run / "config.yaml").read_text())
    values["problem"] = "/gone/mine"
    (run / "config.yaml").write_text(yaml.safe_dump(values))
    return run


def test_a_run_whose_problem_is_gone_is_read_by_its_summary(
    moved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rows.jsonl"
    asked = [str(moved), "format=groups", f"out={out}"]
    assert main(asked) == 2
    assert "/gone/mine: the problem's folder is gone, and " in capsys.readouterr().err
    (moved / "summary.json").write_text(json.dumps({"direction": "minimise", "features": []}))
    assert main([*asked, "reward=target"]) == 2
    assert "put it back, or give reward=rank" in capsys.readouterr().err and not out.exists()
    assert main(asked) == 0
    (row,) = map(json.loads, out.read_text().splitlines())
    best = row["scores"].index(0.25)  # the other one is worse than its parent, of 0.5
    assert row["rewards"][best] == max(row["rewards"]) > row["rewards"][row["scores"].index(0.75)]


def trained(trainer: Any, tiny: Path, rows: Any, config: Any, **more: Any) -> Any:
    """Return one of TRL's trainers after a step."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny)
    tokenizer.pad_token = tokenizer.eos_token
    one = trainer(
        model=AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32),
        args=config,
        train_dataset=rows,
        processing_class=tokenizer,
        **more,
    )
    one.train()
    assert one.state.global_step == 1
    return one


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
@pytest.mark.parametrize("form", ["sft", "dpo", "kto"])
def test_the_trainers_of_trl_take_a_step(
    runs: dict[str, Path], tiny: Path, tmp_path: Path, form: str, suffix: str
) -> None:
    import trl

    name = {"sft": "SFT", "dpo": "DPO", "kto": "KTO"}[form]
    out = tmp_path / f"rows.{suffix}"
    assert main([str(runs["learned"]), f"format={form}", f"out={out}"]) == 0
    config = getattr(trl, f"{name}Config")(
        output_dir=str(tmp_path / "trained"),
        max_steps=1,
        per_device_train_batch_size=2,
        report_to=[],
        use_cpu=True,
        bf16=False,
        save_strategy="no",
        disable_tqdm=True,
    )
    one = trained(getattr(trl, f"{name}Trainer"), tiny, read(out), config)
    if form == "sft":  # the tokens are those that were sampled
        row = one.train_dataset[0]
        assert row["input_ids"] == [1, 2, 0, 7, 8, 9]
        assert row["labels"] == [-100, -100, -100, 7, 8, 9]


@pytest.mark.filterwarnings("ignore:TRL currently supports vLLM")
def test_the_grpo_trainer_of_trl_takes_the_prompts(
    runs: dict[str, Path], tiny: Path, tmp_path: Path
) -> None:
    import trl

    out = tmp_path / "rows.parquet"
    assert main([str(runs["learned"]), "format=groups", f"out={out}"]) == 0
    seen: list[str] = []

    def reward(prompts: list[str], completions: list[str], **rest: Any) -> list[float]:
        seen.extend(prompts)
        return [float(len(each)) for each in completions]

    config = trl.GRPOConfig(
        output_dir=str(tmp_path / "trained"),
        max_steps=1,
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=4,
        report_to=[],
        use_cpu=True,
        bf16=False,
        save_strategy="no",
        disable_tqdm=True,
    )
    prompts = read(out).select_columns(["prompt"])
    trained(trl.GRPOTrainer, tiny, prompts, config, reward_funcs=reward)
    assert set(seen) <= {f"prompt {number}: " for number in range(3)} and seen
