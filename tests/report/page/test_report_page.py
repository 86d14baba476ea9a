"""The page: whole without a network, and whatever a candidate wrote does nothing in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import zlib
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hand_log import PROGRAMS, changed, hand_run, recorded, settings_of, with_others

from engine.core import INITIAL, Direction, Evaluation, Failure, KnownScore
from engine.report.analysis import RunRecord
from engine.report.figures import Aims
from engine.report.page import report_page
from engine.report.page.diff import diff, steps_of
from engine.report.page.pack import packed
from engine.report.page.text import cut, shown
from engine.syntax import read

AIMS = Aims(known=[KnownScore(score=0.95, source="<i>someone</i>")], target=1.0)
BREAKS = "</script><script>document.title='broken'</script><img src=x onerror=alert(1)>"
HOSTILE = (
    f"x = {BREAKS!r}\n"
    "# <!-- <style>*{display:none}</style> -->\n"
    "y = 'a\u202eb\u200b\x00\x1b[2J\x07'\n"
    f"z = '{'w' * 50_000}'\n"
    "s = '\\d'\n"
)


class Page(HTMLParser):
    """A page as a parser reads it: its tags, their attributes, what scripts hold, its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self.text = ""
        self._in_script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append(({name: value or "" for name, value in attrs}, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            attrs, text = self.scripts[-1]
            self.scripts[-1] = attrs, text + data
        else:
            self.text += data


def hostile_run(name: str = "runs/<b>a</b>\u202e") -> RunRecord:
    """The run with hostile programs on its best path, and hostile messages."""
    hostile = replace(read("x = 1\n"), text=HOSTILE)  # a text need not be what was parsed
    events = changed(
        program={"0.0": hostile, "1.1": replace(hostile, text=HOSTILE + "more = 1\n")},
        operator={each: f"<u>{BREAKS}" for each in ("0", "0.0", "0.1")},
        evaluation={
            "1.2": Evaluation(
                score=None,
                failure=Failure.ERROR,
                message=BREAKS,
                metrics={"odd": float("nan"), "huge": float("inf")},
            ),
            "1.1": Evaluation(score=0.9, failure=None, metrics={"worst": float("-inf")}),
        },
    )
    return hand_run("search.archive=structure", name=name, events=events)


def unpacked(text: str) -> object:
    return json.loads(zlib.decompress(base64.b64decode(text)))


def test_nothing_is_loaded_and_only_the_page_own_scripts_run() -> None:
    page = Page(report_page([hand_run()], aims=AIMS))
    assert not [each for each in page.attributes if each[1] in ("src", "srcset", "data", "action")]
    links = [value for _, name, value in page.attributes if name == "href"]
    assert links and all(link.startswith("#") for link in links)
    assert page.tags["link"] == page.tags["iframe"] == page.tags["img"] == 0
    own = [text for attributes, text in page.scripts if not attributes]
    assert len(own) == 2
    policy = next(value for _, name, value in page.attributes if value.startswith("default-src"))
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    for text in own:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "unsafe-eval" not in policy and not re.search(r"script-src[^;]*unsafe-inline", policy)


def test_the_page_can_be_found_through_without_seeing_it() -> None:
    page = Page(report_page([hand_run(), hand_run(name="runs/b")], aims=AIMS))
    for tag in ("main", "nav", "header", "h1"):
        assert page.tags[tag] == 1
    assert page.tags["h2"] == 4 and ("html", "lang", "en") in page.attributes
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len({*ids})
    named = [value for _, name, value in page.attributes if name == "aria-labelledby"]
    linked = [value[1:] for _, name, value in page.attributes if name == "href"]
    assert {*named, *linked} <= {*ids}
    alts = [value for _, name, value in page.attributes if name == "data-alt"]
    assert len(alts) == page.tags["figure"] == page.tags["figcaption"] and all(alts)
    assert page.tags["caption"] >= page.tags["figure"]


def test_what_candidates_wrote_is_text() -> None:
    plain = Page(report_page([hand_run("search.archive=structure")], aims=AIMS))
    text = report_page([hostile_run()], aims=AIMS)
    page = Page(text)
    assert {*page.tags} <= {*plain.tags} and page.tags["script"] == plain.tags["script"]
    assert not [each for each in page.attributes if each[1].startswith("on")]
    assert "document.title='broken'" in page.text  # in the diff, to be read
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u200b\u202e\ud800-\udfff]", text)
    assert "\\u{202e}" in page.text and "\u2400" in page.text
    figures = json.loads(next(t for a, t in page.scripts if a.get("id") == "figures"))
    assert len(figures) == page.tags["figure"]


def test_the_packs_hold_every_program() -> None:
    page = Page(report_page([hostile_run()], aims=AIMS))
    (index,) = (unpacked(t) for a, t in page.scripts if a.get("class") == "index")
    (pack,) = (unpacked(t) for a, t in page.scripts if a.get("class") == "pack")
    assert isinstance(index, dict) and isinstance(pack, list)
    assert index["id"] == [INITIAL, "0.0", "0.1", "1.0", "1.1", "1.2", "2.0"]
    assert index["pack"] == [0, 0, -1, 0, 0, 0, 0]
    assert pack[4:] == [PROGRAMS["1.2"], PROGRAMS["2.0"]]
    assert pack[1] == shown(HOSTILE) and pack[3] == f"{pack[1]}more = 1\n"
    best_first = sorted(index["id"], key=lambda each: index["rank"][index["id"].index(each)])
    assert best_first[:3] == ["1.1", "0.0", "1.0"] and {*best_first[-2:]} == {"0.1", "1.2"}


def test_the_way_to_the_best_may_begin_at_a_program_of_another_island() -> None:
    page = Page(report_page([hand_run(events=with_others())], aims=AIMS))
    (index,) = (unpacked(t) for a, t in page.scripts if a.get("class") == "index")
    assert isinstance(index, dict) and index["id"][-3:] == ["i2.4.0", "f1", "4.0"]
    steps = re.findall(r"^(\S+?)(?: by (\w+))?, score ", page.text, flags=re.MULTILINE)
    assert steps == [("i2.4.0", ""), ("f1", "tuning"), ("4.0", "diff")]


def test_where_there_is_no_room_some_texts_are_left_out() -> None:
    rows = [
        {
            **{key: None for key in ("island", "gain")},
            **{key: "" for key in ("operator", "parent", "outcome", "reason", "message")},
            "id": str(n),
            "order": n,
            "seconds": 0.5,
            "new_best": False,
            "program": hashlib.sha256(str(n).encode()).hexdigest() * 3,
            "score": 1.0 if n == 700 else None,
        }
        for n in range(1000)
    ]
    found = packed(rows, direction=Direction.MAXIMISE, first={"999"}, room=30_000)
    index = unpacked(found.index)
    assert isinstance(index, dict)
    assert found.shown + found.left_out == 1000 and found.left_out
    assert sum(map(len, found.packs)) <= 30_000
    assert index["pack"][999] == index["pack"][700] == 0 and index["pack"][500] == -2
    texts = unpacked(found.packs[0])
    assert isinstance(texts, list)
    assert texts[sum(pack == 0 for pack in index["pack"][:999])] == rows[999]["program"]


def test_a_page_says_when_runs_and_steps_are_left_out() -> None:
    runs = [hand_run(name=f"runs/{n}") for n in range(14)]
    page = Page(report_page(runs, aims=Aims()))
    assert "2 more runs are in the comparison only" in page.text
    assert page.tags["section"] == 2 + 12 * 2


@pytest.mark.parametrize("length", [0, 2])
def test_a_run_without_a_child_has_a_page(length: int) -> None:
    run = hand_run(events=recorded()[: 2 + length])
    page = Page(report_page([run], aims=Aims()))
    assert "1 program from the first one to the best" in page.text


def test_groups_are_told_apart() -> None:
    settings = [settings_of(f"search.k={k}", f"seed={seed}") for k in (1, 4) for seed in (0, 1)]
    runs = [replace(hand_run(), name=f"r{n}", settings=each) for n, each in enumerate(settings)]
    page = Page(report_page(runs, aims=AIMS))
    assert "search.k=1" in page.text and "All settings in which the runs differ" in page.text


def test_a_diff_has_the_lines_that_changed_and_some_around_them() -> None:
    before = "".join(f"line{n} = {n}\n" for n in range(30))
    after = before.replace("line20 = 20\n", "line20 = '<b>'\nmore = 1\n").replace("line3 = 3\n", "")
    lines = list(diff(before, after))
    kinds = Counter(line.kind for line in lines)
    assert kinds == {"same": 12, "removed": 2, "added": 2, "gap": 2}
    (first, second) = (line for line in lines if line.kind == "added")
    assert (first.after, second.after) == (20, 21)
    assert "&lt;b&gt;" in first.html and "<b>" not in first.html
    assert [line.before for line in lines if line.kind == "removed"] == [4, 21]
    assert not list(diff(before, before))
    assert [line.kind for line in diff("", "a\nb\n")] == ["added", "added"]


TEXTS = (
    *("\n\n\n", "x\r\ny", "'''\nopen", "def f(:\n", "\t\tx"),
    *("é = 'ü'\n", "(" * 500, "a\x0cb", "0x"),
)


@pytest.mark.parametrize("text", TEXTS)
def test_any_text_has_a_diff_line_by_line(text: str) -> None:
    safe = shown(text)
    lines = [line for line in diff("", safe) if line.kind == "added"]
    assert len(lines) == safe.removesuffix("\n").count("\n") + 1
    assert all(line.html.count("<span") == line.html.count("</span>") for line in lines)


def test_each_file_of_a_program_is_highlighted_in_its_language() -> None:
    files = "#:file a/b.cpp\nint main() {}\n\n#:file c.py\ndef f(): pass\n#:file d.nobody\n<a>"
    found = [line.html for line in diff("", files)]
    assert len(found) == 7 and found[0] == "#:file a/b.cpp" and found[6] == "&lt;a&gt;"
    assert '<span class="kt">int</span>' in found[1] and found[2] == ""
    assert '<span class="k">def</span>' in found[4]


def test_a_long_path_is_told_by_its_ends() -> None:
    path = [{"id": str(n), "program": f"x = {n}\n"} for n in range(200)]
    steps = steps_of(path, room=4000)
    assert [step.row["id"] for step in steps[:2] + steps[-1:]] == ["0", "1", "199"]
    assert len(steps) == 60
    (whole,) = steps_of([{"id": "a", "program": "x = 1\n" * 5000}], room=100)
    assert len(whole.lines) == 100 and whole.is_cut and whole.added == 5000


def test_text_is_shown_so_that_all_of_it_is_seen() -> None:
    assert shown("plain\ttext\n½ é 漢") == "plain\ttext\n½ é 漢"
    assert shown("\x00\x1b\x7f\r") == "\u2400\u241b\u2421\u240d"
    assert shown("a\u202eb\ud800\u2028") == "a\\u{202e}b\\u{d800}\\u{2028}"
    assert cut("abcdef", 3) == "abc … (3 more characters)" and cut("abc", 3) == "abc"


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")
def test_chromium_draws_all_figures_without_an_error(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(report_page([hostile_run(), hand_run()], aims=AIMS), encoding="utf-8")
    command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr"]
    command += ["--virtual-time-budget=60000", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr
    page = Page(done.stdout)
    (drawn,) = (value for _, name, value in page.attributes if name == "data-drawn")
    assert int(drawn) == page.tags["figure"]
    assert page.text.count("1 to 7 of 7 programs") == 2
    assert "<title>Report: signal</title>" in done.stdout
    roles = Counter(value for tag, name, value in page.attributes if (tag, name) == ("svg", "role"))
    assert roles["img"] == page.tags["figure"]
