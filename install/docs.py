"""Builds the documentation: the Markdown of the project as pages in build/docs, for any browser.

The pages need no network: no font, script or picture comes from elsewhere, and nothing is counted.
A link to a page or heading that there is not ends the build. Usage: make docs.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
OTHERS = {"ARCHITECTURE.md": "internals.md", "CHANGELOG.md": "changelog.md"}
"""Pages that do not lie in docs/, and their names as pages."""

_TARGET = re.compile(r"(?<=\]\()([^)#:\s]+)")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_WORKERS = "assets/javascripts/workers"
_SHIM = re.compile(r'<script src="https://[^"]*/iframe-worker/shim"[^>]*></script>')
_FROM_DISK = """\
if (location.protocol === "file:") {
  const text = TEXT;
  window.Worker = class extends Worker {
    constructor() {
      super(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    }
  };
}
"""


class Loaded(HTMLParser):
    """What a page loads, in ``addresses``."""

    def __init__(self, page: str) -> None:
        """Read a page."""
        super().__init__()
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in what a tag has the browser load; a link to be clicked is none."""
        given = dict(attrs)
        rel = given.get("rel") or ""
        loads = tag != "link" or {"icon", "preload", "preconnect", "stylesheet"} & set(rel.split())
        for key in ("src", "href") if tag != "a" and loads else ():
            if address := given.get(key):
                self.addresses.append(address)


def pages(root: Path) -> dict[Path, Path]:
    """Return the files that make up a project's pages, by their places among them."""
    docs = root / "docs"
    files = (each for each in docs.rglob("*") if each.suffix in (".css", ".md", ".png", ".svg"))
    found = {each.relative_to(docs): each for each in files}
    return found | {Path(place): root / name for name, place in OTHERS.items()}


def stage(root: Path, folder: Path) -> None:
    """Copy all pages of a project to a folder, with the links between them as they lie there."""
    found = pages(root)
    places = {source.resolve(): place for place, source in found.items()}
    for place, source in found.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        if source.suffix != ".md":
            shutil.copyfile(source, folder / place)
            continue
        text = source.read_text(encoding="utf-8")

        def moved(match: re.Match[str], source: Path = source, place: Path = place) -> str:
            target = places.get((source.parent / match[1]).resolve())
            return match[1] if target is None else os.path.relpath(target, place.parent)

        (folder / place).write_text(_TARGET.sub(moved, text), encoding="utf-8")


def from_elsewhere(folder: Path) -> list[str]:
    """Return what the pages in a folder would load from another host, as ``page: address``."""
    return [
        f"{page.relative_to(folder)}: {address}"
        for page in sorted(folder.rglob("*.html"))
        for address in Loaded(page.read_text(encoding="utf-8")).addresses
        if re.match(r"(\w+:)?//", address)
    ]


def search_from_disk(folder: Path) -> None:
    """Let the pages in a folder be searched when they are opened from the disk.

    A browser then starts no worker from a file. Zensical has one started by a script of another
    host; here a script of our own starts it from its text.
    """
    (worker,) = (folder / _WORKERS).glob("search.*.js")
    text = json.dumps(worker.read_text(encoding="utf-8"))
    (folder / _WORKERS / "from_disk.js").write_text(_FROM_DISK.replace("TEXT", text), "utf-8")
    for page in folder.rglob("*.html"):
        to = os.path.relpath(folder / _WORKERS / "from_disk.js", page.parent)
        text = page.read_text(encoding="utf-8")
        page.write_text(_SHIM.sub(f'<script src="{to}"></script>', text), encoding="utf-8")


def build(root: Path, folder: Path) -> int:
    """Write a project's pages to ``docs`` in a folder; return an exit code, 1 for a broken link."""
    for each in ("pages", "docs"):
        shutil.rmtree(folder / each, ignore_errors=True)
    stage(root, folder / "pages")
    config = shutil.copyfile(root / "docs" / "zensical.toml", folder / "zensical.toml")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(
        [*command, "--config-file", str(config)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.partition("Traceback")[0]  # which would be Zensical's own
        print(_COLOUR.sub("", said), file=sys.stderr)
        return 1
    search_from_disk(folder / "docs")
    found = from_elsewhere(folder / "docs")
    for line in found:
        print(f"from another host: {line}", file=sys.stderr)
    return 1 if found else 0


def main() -> int:
    """Build the pages, and say where they are."""
    code = build(ROOT, BUILD)
    if not code:
        print(f"open {(BUILD / 'docs' / 'index.html').relative_to(ROOT)}")
    return code


if __name__ == "__main__":
    sys.exit(main())
