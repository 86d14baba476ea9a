"""What can be said of programs without running them.

Covers: reading a program (`read`), its tree and key, the names that nothing defines, what modules
offer, the places that can be changed and what can be read there. Does not cover prompts, or
mutations: ``engine.prompts``, ``engine.mutation``.
"""

from engine.syntax.reading import read
from engine.syntax.tree import MAX_DEPTH, dotted, parse, source_lines
