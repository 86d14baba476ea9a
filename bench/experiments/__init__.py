"""Experiments: arms x problems x seeds, at equal wall seconds or equal candidates.

`table` reads what is declared in ``table.yaml`` and makes the runs of it; `lanes` has them made,
several at a time on cores of their own, by processes of `lane`; `results` keeps one line of figures
for each; `comparison` sets the arms beside each other; `page` and `figures` write what people read.
"""
