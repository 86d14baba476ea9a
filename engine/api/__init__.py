"""The Python API: `Run`, settings as keywords, events as they come, a model's fan-out.

`engine` itself offers what users import: `Run`, `Problem`, `Engine`, `fanout`. docs/api.md is their
manual. Nothing here prints.
"""
