"""The documentation as pages: they stand alone, and a broken link ends the build."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from install.docs import OTHERS, ROOT, build, from_elsewhere, pages

CONFIG = ROOT / "docs" / "zensical.toml"


def named(navigation: Any) -> Iterator[str]:
    for entry in navigation:
        for value in entry.values():
            if isinstance(value, str):
                yield value
            else:
                yield from named(value)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one page and the pages that every one has."""
    root = tmp_path / "project"
    (root / "docs").mkdir(parents=True)
    settings = '[project]\nsite_name = "P"\ndocs_dir = "pages"\nsite_dir = "docs"\n'
    settings += "use_directory_urls = false\n[project.theme]\nfont = false\n"
    (root / "docs" / "zensical.toml").write_text(settings)
    (root / "docs" / "index.md").write_text("# P\n\n[how](../ARCHITECTURE.md#parts)\n")
    for name in OTHERS:
        (root / name).write_text("# A\n\n## Parts\n\n[home](docs/index.md)\n")
    return root


def test_every_page_is_in_the_navigation() -> None:
    project = tomllib.loads(CONFIG.read_text())["project"]
    assert sorted(named(project["nav"])) == sorted(
        str(place) for place in pages(ROOT) if place.suffix == ".md"
    )


def test_the_pages_are_built_and_load_nothing_from_elsewhere(tmp_path: Path) -> None:
    assert build(ROOT, tmp_path) == 0
    built = tmp_path / "docs"
    assert {page.with_suffix(".html") for page in pages(ROOT) if page.suffix == ".md"} <= {
        page.relative_to(built) for page in built.rglob("*.html")
    }
    assert from_elsewhere(built) == []


def test_links_lead_where_pages_lie(project: Path, tmp_path: Path) -> None:
    assert build(project, tmp_path) == 0
    assert 'href="internals.html#parts"' in (tmp_path / "docs" / "index.html").read_text()
    assert 'href="index.html"' in (tmp_path / "docs" / "internals.html").read_text()


def test_a_broken_link_ends_the_build(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = "# P\n\n[no page](nothing.md)\n\n[no heading](../ARCHITECTURE.md#nothing)\n"
    (project / "docs" / "index.md").write_text(broken)
    assert build(project, tmp_path) == 1
    said = capsys.readouterr().err
    assert "page does not exist" in said and "index.md:3" in said
    assert "anchor does not exist" in said and "index.md:5" in said
    assert "Traceback" not in said


def test_what_comes_from_another_host_is_found(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loads = (
        '<script src="https://host/a.js"></script>',
        '<img src="//host/a.png">',
        '<link rel="stylesheet" href="http://host/a.css">',
    )
    links = '<https://host/b> is a link, and so is <a href="https://host/c">this</a>.'
    (project / "docs" / "index.md").write_text("\n\n".join(["# P", *loads, links]))
    assert build(project, tmp_path) == 1
    assert sorted(capsys.readouterr().err.splitlines()) == [
        "from another host: index.html: //host/a.png",
        "from another host: index.html: http://host/a.css",
        "from another host: index.html: https://host/a.js",
    ]
