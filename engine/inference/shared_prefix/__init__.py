"""Decode over a shared prefix: KV that the siblings of a call have in common is read once a step.

Each child of a call decodes over the same prompt, whose blocks of KV vLLM holds once and would read
once a child. Here rows with the same leading blocks are found on the GPU (`plan`), attend to them
together, and each to its own rest; both are joined by their log-sum-exp (`attention`). `backend` is
how vLLM gets it. `reference` says the same in NumPy.

On where ``model.shared_prefix=auto``: see ``docs/gpu.md`` for what it brings on an H100.
"""

from engine.inference.shared_prefix.registration import register
