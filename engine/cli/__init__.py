"""The command ``brood``: every command line of the engine under one name.

``main`` finds the command, ``commands`` is the list of them, ``words`` and ``shells`` are for tab
completion. A command is what ``python -m engine.NAME`` is; nothing is loaded but what it needs.
"""
