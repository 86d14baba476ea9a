"""In which form a problem's programs are shown to a model, and asked of it.

A program of one Python file that may change everywhere is shown as it is. Of any other one, what
may change is shown, as `engine.syntax.blocks.open_text` has it, and what is fixed stands once in
the task. Answers have the form in which programs are shown.
"""

from functools import cached_property

from engine.prompts.answer import fence_for, fenced
from engine.syntax.blocks import PLAIN, fixed_text, open_text, outline
from engine.syntax.plain import comment_of, language_of

_PYTHON = "python"
_SYSTEM = (
    "You improve {language}programs. You are given a task, earlier programs with their scores, and "
    "the program to improve. Keep the names and the signature{plural} of {what}."
)


class Form:
    """The form of one problem's programs. All that it says is the same in a whole run."""

    def __init__(self, initial_program: str) -> None:
        """Look at the problem's initial program; all others have the same files and blocks."""
        self._initial = initial_program
        self._outline = outline(initial_program)
        self.is_plain = self._outline.is_plain

    @cached_property
    def language(self) -> str:
        """The language, as a fence names it; ``text`` where files have several."""
        names = {file.name for file in self._outline.open_files}
        languages = {_PYTHON if name == PLAIN else language_of(name) for name in names}
        return languages.pop() if len(languages) == 1 else "text"

    @cached_property
    def comment(self) -> str:
        """What begins a comment in the files that may change."""
        name = self._outline.open_files[0].name
        return "#" if name == PLAIN else comment_of(name)

    @property
    def system(self) -> str:
        """What a model is told of its part."""
        if self.is_plain:
            return _SYSTEM.format(language="Python ", plural="", what="its entry point")
        return _SYSTEM.format(language="", plural="s", what="what the fixed text or the task uses")

    @property
    def fixed(self) -> str:
        """The section of a task that shows what does not change; empty where there is nothing."""
        text = fixed_text(self._initial)
        if not text:
            return ""
        return (
            "# Fixed text\nOnly what stands between EVOLVE-BLOCK-START and EVOLVE-BLOCK-END may "
            f"change; programs are shown and written without the rest, which is:\n"
            f"{fenced(self.language, text.strip(chr(10)))}\n\n"
        )

    @property
    def bare(self) -> str:
        """What a model is asked to write."""
        several = len(self._outline.open_files) > 1
        blocks = any(file.has_blocks for file in self._outline.open_files)
        if several:
            each = "all its blocks with their EVOLVE-BLOCK lines" if blocks else "all of it"
            return f"each file that you change, its #:file line and then {each},"
        return "all its blocks with their EVOLVE-BLOCK lines" if blocks else "the whole program"

    @cached_property
    def whole(self) -> str:
        """The same, between fences that what the initial program holds does not close."""
        return f"{self.bare} in one {fence_for(self._initial)}{self.language} block"

    @property
    def named(self) -> str:
        """What is said of the file that a search/replace block is for."""
        if len(self._outline.open_files) == 1:
            return ""
        return "Before a block stands the #:file line of its file."

    def shown(self, program: str) -> str:
        """Return what is shown of a program, without fences."""
        return program.strip() if self.is_plain else open_text(program).strip("\n")

    def quoted(self, program: str) -> str:
        """Return what is shown of a program, between fences."""
        return fenced(self.language, self.shown(program))
