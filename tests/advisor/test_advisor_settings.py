"""The method pacevolve, and what an advisor can and can't be combined with."""

from __future__ import annotations

import pytest

from engine import config
from engine.core import UserError


def test_the_method_has_the_sources_values() -> None:
    settings = config.resolve(["method=pacevolve"])
    assert settings.advisor.enabled and settings.advisor.implementer == "model"
    search, learning = settings.search, settings.learning
    assert (search.k, search.temperature_min, search.temperature_max) == (8, 1.0, 1.0)
    assert {name for name, weight in search.operators.items() if weight} == {"rewrite"}
    assert (learning.method, learning.reward, learning.best_of) == ("phase_adaptive", "target", 4)
    assert (learning.groups, learning.passes) == (1, 1)
    assert (learning.clip_low, learning.clip_high, learning.weight_decay) == (0.2, 0.28, 0.1)


def test_what_is_given_takes_the_place_of_the_methods() -> None:
    settings = config.resolve(["method=pacevolve", "learning=grpo", "search.k=4", "model=smollm2"])
    assert (settings.learning.method, settings.search.k) == ("grpo", 4)
    assert settings.learning.reward == "target"
    none = config.resolve(["learning=none", "method=pacevolve"])
    assert none.learning.method == "none" and none.advisor.enabled  # the source's arm without RL


def test_without_a_method_there_is_no_advisor() -> None:
    plain = config.resolve([])
    assert not plain.advisor.enabled
    assert plain == config.resolve(["method=plain"])


def test_settings_with_an_advisor_survive_a_runs_folder(tmp_path: pytest.TempPathFactory) -> None:
    settings = config.resolve(
        [
            *("method=pacevolve", "advisor.implementer=endpoint", "advisor.endpoint.model=a/b:c"),
            *("advisor.endpoint.url=https://example.org:8000/v1", "advisor.endpoint.key_env=KEY"),
        ]
    )
    path = tmp_path / "config.yaml"  # type: ignore[operator]
    config.save(settings, path)
    assert config.load(path) == settings


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model=mutation", "advisor.enabled=true"], "vllm where advisor.enabled is true"),
        (["pipeline.speculate=true"], "pipeline.speculate is True; it must be false"),
        (["prompts.layout=transcript"], "it must be stable or classic"),
        (["width.policy=cost_aware"], "it must be fixed or turboevolve"),
        (["search.operators.infill=1"], "search.operators.infill is 1"),
        (
            ["search.operators.verbalized=1", "learning=none"],
            "whose experiments rewrite and diff carry out",
        ),
        (["advisor.answer_tokens=1"], "advisor.answer_tokens is 1; it must be 128 or more"),
        (["advisor.implementer=other"], "advisor.implementer is 'other'"),
        (["advisor.implementer=endpoint"], "advisor.endpoint.url is None"),
        (
            ["advisor.implementer=endpoint", "advisor.endpoint.url=http://127.0.0.1:1/v1"],
            "advisor.endpoint.model is None",
        ),
    ],
)
def test_what_does_not_suit_an_advisor_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError) as refused:
        config.resolve(["method=pacevolve", *arguments])
    assert message in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "example.org/v1",
        "ftp://example.org/v1",
        "https://",
        "https://user:secret@example.org/v1",
        "https://example.org/v1?key=secret",
        "https://example.org:99999/v1",
        "https://exa mple.org/v1",
        "http://[::1",
    ],
)
def test_an_odd_address_is_refused_in_a_line(url: str) -> None:
    with pytest.raises(UserError, match="it must be an address as https://HOST/v1"):
        config.resolve([f"advisor.endpoint.url={url}"])


def test_a_key_is_sent_over_https_or_on_this_machine_and_is_given_by_name() -> None:
    key = "advisor.endpoint.key_env=KEY"
    for url in ("https://example.org/v1", "http://127.0.0.1:8000/v1", "http://localhost/v1"):
        config.resolve([f"advisor.endpoint.url={url}", key])
    with pytest.raises(UserError, match="https where a key is sent to another machine"):
        config.resolve(["advisor.endpoint.url=http://example.org/v1", key])
    with pytest.raises(UserError, match="not the key itself") as refused:
        config.resolve(
            ["advisor.endpoint.url=https://example.org", "advisor.endpoint.key_env=sk-12-34"]
        )
    assert "sk-12-34" not in str(refused.value)
