"""Watching a run with the tools of those who run many programs: all of it off by default.

- `json_lines`: each event, and each message, as a line of JSON on standard error (``log=json``)
- `prometheus`: figures that a Prometheus on this machine scrapes (``prometheus=PORT``)
- `spans`, `otlp`: OpenTelemetry spans, to a file or a collector here (``opentelemetry=...``)

`watched` is the door. All of them fold the events that are on disk, as the dashboard does, and the
loop does not know of them. Nothing here ends a run, delays its commits by more than the work of
writing a line, or is told to another machine.
"""

from engine.watching.door import check_watching, watched
from engine.watching.json_lines import JsonFormatter
