"""The Python that runs in the boxes of a judge: another system's evaluator, and the candidate.

Nothing here runs in the engine's own process. `engine.evaluation` starts, watches and kills:

- ``python -m engine.judge.referee SETUP PROGRAM [CHANNEL]`` runs a foreign evaluator on the file
  PROGRAM and prints one JSON object as its last line. With a CHANNEL, a socket's descriptor, it is
  *split*: the evaluator gets stand-ins for what the program defines, and each call goes through the
  channel. Without, the evaluator imports the program into its own process: *together*.
- ``python -m engine.judge.candidate CHANNEL`` is the other end: it runs the program and answers.

Modules: `setup` (what the referee is told), `values` and `frames` (what crosses the channel),
`link` (calls and objects over it), `proxies` (the other side's objects), `manners` (what a program
may do with the evaluator's), `turns` (at the channel), `names` (what a rehearsal notes), `program`
(how the candidate's side loads a text), `imports` and `guards` (what the evaluator's import of the
program gives, what it may not do), `contracts` and `scripts` (how each system calls its evaluator),
`result` and `verdict` (from what an evaluator returns to the JSON object). ``shims/`` holds the
modules of the other systems that their evaluators import.

What split promises: the program's code runs in no process that knows the evaluator's data, code or
memory. What it sends is numbers, texts, arrays and references; it is never unpickled, imported or
executed. What it does not promise: that an evaluator which believes a figure that the program
reports about itself is right to.
"""
