"""Malformed and forged inputs for everything that reads what somebody else wrote.

- `target` is what a reader is to the bench: how its inputs are drawn, and what it may do with them;
- `mutations` changes real samples, as bytes, as text and as JSON values;
- `wire`, `sandbox`, `native` are the targets between a candidate and the evaluator;
- `problems`, `runs`, `steering` are those that read files;
- `reference` decodes what crosses the wire a second time, written for itself;
- `worker` feeds a target in a process of its own, `hunt` watches such processes.
"""
