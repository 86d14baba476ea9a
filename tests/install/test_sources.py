"""uv is told to look where pip looks."""

import sys
from pathlib import Path

import pytest

from install.checks import SetupError
from install.sources import pip_options, read_sources, uv_sources


def test_options_of_all_levels() -> None:
    listing = (
        ":env:.find-links='/from/env'\n"
        "global.find-links='/from/file'\n"
        "global.index-url='file:///index'\n"
        "install.index-url='file:///install'\n"
        "freeze.timeout='10'\n"
    )
    expected = {"find-links": "/from/env", "index-url": "file:///install"}
    assert pip_options(listing) == expected


def test_options_of_no_configuration() -> None:
    assert pip_options("") == {}


def test_pip_options_in_uv_words() -> None:
    options = {
        "find-links": "/a /b\n/c",
        "index-url": "file:///one",
        "extra-index-url": "file:///two file:///three",
        "cert": "/certificates",
    }
    sources = uv_sources(options, {"PATH": "/bin"})
    assert sources.arguments == ()
    assert sources.environ == {
        "PATH": "/bin",
        "UV_FIND_LINKS": "/a,/b,/c",
        "UV_DEFAULT_INDEX": "file:///one",
        "UV_INDEX": "file:///two file:///three",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "SSL_CERT_FILE": "/certificates",
    }


def test_what_is_set_for_uv_stays() -> None:
    environ = {"UV_FIND_LINKS": "/mine", "UV_INDEX_STRATEGY": "first-index"}
    options = {"find-links": "/pip", "extra-index-url": "file:///two"}
    result = uv_sources(options, environ).environ
    assert result["UV_FIND_LINKS"] == "/mine"
    assert result["UV_INDEX_STRATEGY"] == "first-index"
    assert environ == {"UV_FIND_LINKS": "/mine", "UV_INDEX_STRATEGY": "first-index"}


@pytest.mark.parametrize(("value", "offline"), [("1", True), ("true", True), ("0", False)])
def test_no_index(value: str, offline: bool) -> None:
    assert uv_sources({"no-index": value}, {}).arguments == (("--no-index",) if offline else ())


def test_the_real_pip(tmp_path: Path) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nfind-links = /one\n  /two\nindex-url = file:///here\n")
    environ = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": str(config), "PIP_PROXY": "localhost:1"}
    result = read_sources(Path(sys.executable), environ).environ
    assert result["UV_FIND_LINKS"] == "/one,/two"
    assert result["UV_DEFAULT_INDEX"] == "file:///here"
    assert result["ALL_PROXY"] == "localhost:1"


def test_a_broken_pip_configuration(tmp_path: Path) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("find-links = /no/section\n")
    environ = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": str(config)}
    with pytest.raises(SetupError, match="pip can't read its configuration"):
        read_sources(Path(sys.executable), environ)
