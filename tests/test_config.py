"""From arguments to settings: what is taken, what is refused, sweeps, saving and loading."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

import evaluators
from engine import config
from engine.config.places import default_workers
from engine.core import UserError
from engine.problem import shipped
from engine.search.topologies import TOPOLOGIES
from engine.settings import CascadeSettings, IslandSettings, PipelineSettings

PROBLEMS = ", ".join(sorted(shipped()))


def refused(*arguments: str) -> str:
    """Return the one line with which ``arguments`` are refused."""
    with pytest.raises(UserError) as refusal:
        config.resolve(arguments)
    message = str(refusal.value)
    assert message and message.isprintable()
    return message


def test_the_arguments_of_the_manual() -> None:
    settings = config.resolve(
        ["problem=signal", "model=smollm2", "search.k=8", "budget.candidates=200", "seed=0"]
    )
    assert Path(settings.problem) == shipped()["signal"]
    assert (settings.model.name, settings.model.path) == ("smollm2", None)
    assert (settings.search.k, settings.budget.candidates, settings.seed) == (8, 200, 0)
    assert (settings.runs, settings.name) == ("runs", None)


def test_every_default_is_valid_with_every_model_and_problem() -> None:
    assert config.resolve([]) == config.resolve(["problem=signal", "model=smollm2"])
    for problem, folder in shipped().items():
        assert Path(config.resolve([f"problem={problem}"]).problem) == folder
    big = config.resolve(["model=qwen3_coder_30b"])
    assert big.model.path == "Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8"
    assert {name for name, weight in big.search.operators.items() if weight} == {"rewrite", "diff"}
    assert big.budget.seconds is None
    assert (big.search.failures, config.resolve([]).search.failures) == (2, 0)


def test_the_defaults_of_the_evaluation() -> None:
    evaluation = config.resolve([]).evaluation
    assert evaluation.workers >= 1 and evaluation.strict is False
    assert evaluation.cascade == CascadeSettings(
        keep=0.5, audit=0.1, correlation_min=0.3, window=64
    )
    changed = config.resolve(["evaluation.strict=true", "evaluation.cascade.keep=0.25"]).evaluation
    assert changed == replace(
        evaluation, strict=True, cascade=replace(evaluation.cascade, keep=0.25)
    )


def test_the_defaults_of_the_islands_and_the_pipeline() -> None:
    settings = config.resolve([])
    assert settings.islands == IslandSettings(
        count=4, migrate_every=15, migrants=5, topology=TOPOLOGIES.read({"policy": "ring"})
    )
    usual = PipelineSettings(
        overlap=True,
        speculate=False,
        ahead=3,
        children=None,
        candidates=None,
        adaptive=True,
        end_early=True,
    )
    assert settings.pipeline == usual
    changed = config.resolve(["pipeline.overlap=false", "pipeline.children=8", "islands.count=4"])
    assert changed.pipeline == replace(usual, overlap=False, children=8)
    assert changed.islands.count == 4


@pytest.mark.parametrize(
    ("cores", "beside_a_model", "beside_a_gpu"),
    [(1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 2, 2), (8, 4, 6), (16, 8, 12), (96, 48, 72)],
)
def test_the_evaluators_get_the_cores_that_a_model_leaves(
    cores: int, beside_a_model: int, beside_a_gpu: int
) -> None:
    assert default_workers(cores, on_gpu=False) == beside_a_model
    assert default_workers(cores, on_gpu=True) == beside_a_gpu


def test_the_users_data_are_kept_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert config.resolve([]).data is None
    assert config.resolve(["data=null"]).data is None
    assert config.resolve(["data=some/my data.csv"]).data == f"{tmp_path}/some/my data.csv"
    assert config.resolve(["data=~/x"]).data == "/home/me/x"


def test_arguments_win_over_a_preset_and_the_last_of_two_over_the_first() -> None:
    settings = config.resolve(
        [
            "search.operators.infill=0.25",
            "budget.seconds=5",
            "model=qwen3_coder_30b",
            "seed=1",
            "seed=2",
        ]
    )
    assert settings.search.operators["infill"] == 0.25
    assert (settings.budget.seconds, settings.seed) == (5.0, 2)
    both = config.resolve(["model=smollm2", "model=qwen3_coder_30b"])
    assert (both.model.name, both.model.path) == (
        "qwen3_coder_30b",
        "Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8",
    )


def test_a_model_by_path_is_named_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = config.resolve(["model.path=Someone/Some-Model-1.5B"]).model
    assert (hub.name, hub.path) == ("Some-Model-1.5B", "Someone/Some-Model-1.5B")
    (tmp_path / "weights").mkdir()
    monkeypatch.chdir(tmp_path)
    # In full, because the run may be resumed from another folder.
    local = config.resolve(["model=qwen3_coder_30b", "model.path=./weights"]).model
    assert (local.name, local.path) == ("weights", str(tmp_path / "weights"))


def test_a_model_by_path_gets_limits_from_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"text_config": {"max_position_embeddings": 2048}}')
    settings = config.resolve([f"model.path={tmp_path}"])
    assert (settings.model.max_model_len, settings.model.max_tokens) == (2048, 256)
    assert (settings.prompts.history_tokens, settings.prompts.growth_tokens) == (512, 256)
    assert {name for name, each in settings.search.operators.items() if each} == {"rewrite", "diff"}
    given = config.resolve([f"model.path={tmp_path}", "model.max_model_len=1024"])
    assert (given.model.max_model_len, given.model.max_tokens) == (1024, 128)
    named = config.resolve([f"model.path={tmp_path}", "model=smollm2"])
    assert named.model.max_model_len == 4096
    # One that is not here, or damaged, is refused once it is looked for, with what to do.
    (tmp_path / "config.json").write_text("{")
    for path in (str(tmp_path), "someone/not-here"):
        assert config.resolve([f"model.path={path}"]).model.max_model_len == 4096


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (
            "problem=nope",
            f"unknown problem 'nope'; valid: {PROBLEMS} (or give problem.path",
        ),
        ("problem=", f"unknown problem ''; valid: {PROBLEMS}"),
        ("problem=null", f"unknown problem None; valid: {PROBLEMS}"),
        ("problem=[signal]", f"valid: {PROBLEMS}"),
        (
            "model=nope",
            "unknown model 'nope'; valid: derived, mutation, qwen3_5_4b, qwen3_6_27b, "
            "qwen3_6_35b_a3b, qwen3_coder_30b, smollm2",
        ),
        (
            "model={path: x}",
            "valid: derived, mutation, qwen3_5_4b, qwen3_6_27b, qwen3_6_35b_a3b, qwen3_coder_30b, "
            "smollm2",
        ),
        ("search.k=x", "search.k is 'x'; it must be a whole number"),
        ("search.k=", "search.k is ''; it must be a whole number"),
        ("search.k=1.5", "search.k is 1.5; it must be a whole number"),
        ("search.k=null", "search.k is None; it must be a whole number"),
        ("search.k=true", "search.k is True; it must be a whole number"),
        ("search.k=[1]", "search.k is [1]; it must be a whole number"),
        ("search.k=0", "search.k is 0; it must be 1 or more"),
        ("search.temperature_min=warm", "it must be a finite number"),
        ("search.temperature_max=" + "9" * 400, "it must be a finite number"),
        ("budget.seconds=[]", "budget.seconds is []; it must be a finite number, or null"),
        ("budget.seconds=nan", "budget.seconds is nan"),
        ("seed=nan", "seed is nan; it must be a whole number"),
        ("seed=1e3", "seed is 1000.0; it must be a whole number"),
        ("seed=" + "9" * 5000, "can't be read"),
        ("seed=-1", "seed is -1; it must be 0 or more"),
        ("seed=1,2", "add --multirun"),
        ("search.k=range(1,3)", "add --multirun"),
        ("name='a\nb',c", "add --multirun"),
        ("seed=${seed}", "Recursive interpolation"),
        ("seed=${nothing}", "'nothing' not found"),
        ("seed=???", "seed is '???'; it must be a whole number"),
        ("+seed=1", "adds or removes a key"),
        ("++seed=1", "adds or removes a key"),
        ("~seed", "adds or removes a key"),
        ("--seed", "arguments have the form key=value"),
        ("seed", "arguments have the form key=value"),
        ("seed: 1", "arguments have the form key=value"),
        ("", "arguments have the form key=value"),
        ("{", "arguments have the form key=value"),
        ("seed\n=1", "arguments have the form key=value"),
        ("runs='it''s'", "the form \"key='value'\""),
        ("name=", "name is ''; it must be one folder's name"),
        ("name=..", "name is '..'; it must be one folder's name"),
        ("name=a/b", "name is 'a/b'; it must be one folder's name"),
        ("name='a\nb'", r"name is 'a\nb'; it must be one folder's name"),
        ("name=\udcff", r"name is '\udcff'; it must be one folder's name"),
        ("name=[a]", "name is ['a']; it must be text, or null"),
        ("runs=", "runs is ''; it must be text, and not empty"),
        ("runs=null", "runs is None; it must be text"),
        ("evaluation.strict=1", "evaluation.strict is 1; it must be true or false"),
        ("evaluation.strict=null", "evaluation.strict is None; it must be true or false"),
        ("evaluation.cascade.keep=half", "evaluation.cascade.keep is 'half'; it must be a finite"),
        ("evaluation.cascade.window=8", "evaluation.cascade.window is 8; it must be 16 or more"),
        ("search.failures=-1", "search.failures is -1; it must be 0 or more"),
        ("islands.count=0", "islands.count is 0; it must be 1 or more"),
        ("islands.count=two", "islands.count is 'two'; it must be a whole number"),
        ("islands.migrate_every=0.5", "islands.migrate_every is 0.5; it must be a whole number"),
        ("islands.migrants=null", "islands.migrants is None; it must be a whole number"),
        ("pipeline.speculate=auto", "pipeline.speculate is 'auto'; it must be true or false"),
        ("pipeline.overlap=auto", "pipeline.overlap is 'auto'; it must be true or false"),
        ("pipeline.adaptive=1", "pipeline.adaptive is 1; it must be true or false"),
        ("pipeline.children=0", "pipeline.children is 0; it must be 1 or more, or null"),
        (
            "pipeline.candidates=many",
            "pipeline.candidates is 'many'; it must be a whole number, or",
        ),
        ("data=", "data is ''; it must be a file or a folder, or null"),
        ("data=~nobody-has-this-name/x", "can't be resolved"),
        ("data=[a]", "data is ['a']; it must be a file or a folder, or null"),
        ("problem.path=", "problem.path is ''; it must be a folder"),
        ("problem.path=null", "problem.path is None; it must be a folder"),
        ("problem.path=~nobody-has-this-name/x", "can't be resolved"),
        ("model.path=", "model.path is ''; it must be text, and not empty, or null"),
        ("model.path=~nobody-has-this-name/x", "can't be resolved"),
        ("model.cache_dir=", "model.cache_dir is ''"),
    ],
    ids=lambda text: text[:30],
)
def test_bad_input_is_refused_in_one_line(argument: str, words: str) -> None:
    assert words in refused("search.k=2", argument)


@pytest.mark.parametrize(
    "argument",
    [
        "search.kk=1",
        "=1",
        "defaults=[]",
        "hydra.run.dir=x",
        "hydra/launcher=x",
        "model.name=x",
        "resume=x",
        "problem@x=signal",
        "search.parent={p_elite: 1}",
        "search=default",
    ],
)
def test_an_unknown_key_is_refused_in_a_short_line(argument: str) -> None:
    message = refused(argument)
    assert message.startswith(f"unknown key {argument.rpartition('=')[0].split('=')[0]!r}; ")
    assert message.endswith("docs/reference.md has all keys")
    assert len(message) < 300 and len(refused(f"{'x' * 3000}=1")) < 300


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("search.kk=1", "did you mean search.k? or "),
        ("problen=signal", "did you mean problem? or problem.path? "),
        ("workers=2", "did you mean evaluation.workers? or cluster.workers? "),
        ("foo=1", "the nearest are log, "),
        ("pool=shipped", "give pool.KEY, KEY one of sources, most_of_run, "),
        ("budget=5", "give budget.KEY, KEY one of candidates, seconds, "),
        (
            "budget.prices=5",
            "give budget.prices.KEY, KEY one of prompt, cached_prompt, generated; ",
        ),
        ("learning.rnk=1", "did you mean learning.rank? or "),
        ("search=default", "parent.policy and 8 more; "),
    ],
)
def test_an_unknown_key_names_what_may_be_meant(argument: str, words: str) -> None:
    assert words in refused(argument)


@pytest.mark.parametrize(
    "text",
    [
        "a b",
        "1",
        "1.50",
        "1_000",
        "20241107_120000",
        "true",
        "0x10",
        "é",
        "x=y",
        "it's",
        "(1)",
        "~",
        "a\\",
    ],
)
def test_a_name_is_taken_letter_by_letter(text: str) -> None:
    assert config.resolve([f"name={text}"]).name == text


@budget(max_examples=20, deadline=None)
@given(
    st.text(
        st.characters(exclude_categories=["C", "Z"], exclude_characters="/$"),
        min_size=1,
        max_size=40,
    )
)
def test_any_name_can_be_given_in_quotes(text: str) -> None:
    if text not in (".", ".."):
        assert config.resolve([f"name={config.quoted(text)}"]).name == text


def test_a_null_is_none_and_a_quoted_one_text() -> None:
    assert config.resolve(["name=null"]).name is None
    assert config.resolve(["name='null'"]).name == "null"


def test_paths_as_people_type_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    home = config.resolve(["problem.path=~/my problem", "model.cache_dir=~/cache", "runs=~/r é"])
    assert home.problem == f"{tmp_path}/my problem"
    assert home.model.cache_dir == f"{tmp_path}/cache"
    assert home.runs == "~/r é"
    assert config.resolve([]).model.cache_dir == f"{tmp_path}/.cache/brood"
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert config.resolve([]).model.cache_dir == "/elsewhere/brood"


@pytest.mark.parametrize(
    ("arguments", "key", "switch"),
    [
        (["method=shinka", "islands.count=1"], "pipeline", "speculate"),
        ([], "guidance", "enabled"),
    ],
)
def test_a_recorded_run_of_what_no_longer_goes_together_is_read_without_it(
    tmp_path: Path, arguments: list[str], key: str, switch: str
) -> None:
    config.save(config.resolve(arguments), tmp_path / "config.yaml")
    values = yaml.safe_load((tmp_path / "config.yaml").read_text())
    values[key][switch] = True
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(values))
    (tmp_path / "run.db").touch()
    with pytest.raises(UserError, match=f"{key}.{switch} is True"):
        config.load(tmp_path / "config.yaml")
    assert not getattr(getattr(config.load_recorded(tmp_path), key), switch)


def test_a_sweep_is_every_combination_in_order() -> None:
    jobs = config.expand(["search.k=1,2", "seed=range(0,2)", "problem=signal", "name=x y"])
    assert len(jobs) == 4
    settings = [config.resolve(job) for job in jobs]
    assert [(each.search.k, each.seed) for each in settings] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert {each.name for each in settings} == {"x y"}
    assert config.expand([]) == [[]]
    (job,) = config.expand(["search.operators.a:A=1", "search.k=3", "search.operators.b:B=2"])
    assert len(job) == 3
    (job,) = config.expand(["search.operators.a:A=1", "search.operators.a:A=2"])
    assert len(job) == 1 and "2" in job[0]
    assert [config.resolve(job).model.path for job in config.expand(["model.path=/a,b/c"])] == [
        "/a",
        "b/c",
    ]
    with pytest.raises(UserError, match="key=value"):
        config.expand(["seed"])


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["model=qwen3_coder_30b", "budget.seconds=null", "name=null"],
        ["name=null-ish", "runs=a: b", "search.parent.epsilon=1e-05", "budget.seconds=0.1"],
        ["name='007'", "runs=ünï", "problem.path=/x'y\"z", "seed=9223372036854775807"],
        ["pipeline.speculate=true", "pipeline.candidates=3", "islands.count=3"],
        ["data=~/my data", "evaluation.strict=true", "evaluation.cascade.window=100"],
        ["name=1e3", "model.path='yes'", "search.temperature_min=0.30000000000000004"],
    ],
)
def test_saved_settings_load_as_they_were(tmp_path: Path, arguments: list[str]) -> None:
    settings = config.resolve(arguments)
    config.save(settings, tmp_path / "config.yaml")
    assert config.load(tmp_path / "config.yaml") == settings


def test_a_setting_that_is_missing_unknown_or_wrong_in_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    config.save(config.resolve([]), path)
    good = yaml.safe_load(path.read_text())

    def message_of(values: object) -> str:
        path.write_text(yaml.safe_dump(values))
        with pytest.raises(UserError) as refusal:
            config.load(path)
        assert str(refusal.value).startswith(f"{path} ") and "\n" not in str(refusal.value)
        return str(refusal.value)

    assert "seed is missing" in message_of(
        {key: value for key, value in good.items() if key != "seed"}
    )
    assert "search.k2 is no key; did you mean k?" in message_of(
        good | {"search": good["search"] | {"k2": 1}}
    )
    assert "seed is '1'; it must be a whole number" in message_of(good | {"seed": "1"})
    assert "seed is -1" in message_of(good | {"seed": -1})
    assert "search is None; it must be a mapping with the keys k, " in message_of(
        good | {"search": None}
    )
    assert "search.operators is 3" in message_of(
        good | {"search": good["search"] | {"operators": 3}}
    )
    assert "what was read is []; it must be a mapping with the keys problem, " in message_of([])
    removed = message_of(good | {"islands": good["islands"] | {"elders": 3}})
    assert "islands.elders is no key" in removed and "the version of Brood that began it" in removed
    with pytest.raises(UserError, match="can't be read as a run's settings"):
        config.load(tmp_path / "nothing.yaml")


def test_a_folder_put_among_the_evaluators_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, folder in shipped().items():
        shutil.copytree(folder, tmp_path / name)
    shutil.copytree(shipped()["signal"], tmp_path / "mine")
    with monkeypatch.context() as patch:
        patch.setattr(evaluators, "__path__", [str(tmp_path)])
        assert Path(config.resolve(["problem=mine"]).problem) == tmp_path / "mine"
        names = ", ".join(sorted(shipped()))
        assert f"valid: {names} (" in refused("problem=nope")
    assert f"valid: {PROBLEMS} (" in refused("problem=mine")


def test_arguments_of_the_engine_are_a_mapping_or_one_by_one(tmp_path: Path) -> None:
    one_by_one = config.resolve(
        ["model.engine.max_logprobs=5", "model.engine.kernel_config.moe_backend=triton"]
    )
    given = {"max_logprobs": 5, "kernel_config": {"moe_backend": "triton"}}
    assert one_by_one.model.engine == given
    mapping = "model.engine={max_logprobs: 5, kernel_config: {moe_backend: triton}}"
    assert config.resolve([mapping]) == one_by_one
    config.save(one_by_one, tmp_path / "config.yaml")
    assert config.load(tmp_path / "config.yaml") == one_by_one
    assert config.resolve([]).model.engine == {}
    with pytest.raises(UserError, match=r"model\.engine is 3; it must be a mapping"):
        config.resolve(["model.engine=3"])
    with pytest.raises(
        UserError, match=r"unknown key 'model\.engines'; did you mean model\.engine"
    ):
        config.resolve(["model.engines=3"])
