"""Cluster: islands that have a run each, and may be anywhere.

An island's run is a run of one island (``engine.api.run``), with a log, a budget and a seed of its
own. So it goes on wherever its log can be read, and what it makes follows from its seed and the
model's answers: not from where it runs, or from who dies. Neighbours read each other's logs for
migrants, at fixed points of their own iterations (`Exchange`).

- `islands` makes an island's settings of the whole run's, and its log;
- `host` has the loops of several islands in one process, on one model (`sharing`);
- `exchange` sends and receives migrants, between two calls of an island;
- `worker` is a process with a host, `on_ray` the same as a Ray actor; `same_problem` sees that its
  machine has what the run needs there; `fleet` keeps as many as there are to be, `driver` shares
  the islands out among them (`assignment`, `refusals`) and hears of each stay at one
  (`worker_report`), and `session` is all of it at a terminal;
- `outposts/` are evaluators elsewhere, `kv/` the KV of prompts, `learning/` one trainer for all;
- `machines` are what all that runs on, and ``python -m engine.cluster`` starts, shows and drains
  them.

Nothing of it is imported, and Ray least of all, by a run whose islands are in one loop.
"""
