import ast

def walk(tree: ast.AST, *, most_levels: int) -> tuple[list[ast.AST], int] | None:
    """Return the nodes in the order of `ast.walk`, and how many levels lie below the root.

    None where the tree has more than ``most_levels`` levels.
    """

def canonical(tree: ast.AST) -> bytes:
    """Return the text that `engine.syntax.reading` makes a digest of."""
