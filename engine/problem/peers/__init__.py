"""Problem folders of other systems, read as they are: OpenEvolve, SkyDiscover, ShinkaEvolve.

`read_peer` makes an ordinary `Problem` of one, whose judge runs the folder's own evaluator
(``engine.judge``). Nothing of the folder is executed here: Python is read as a syntax tree.

- `recognise` finds the initial program, the evaluator and the configuration by their names;
- `config` reads YAML and keeps its line numbers; `script` finds values in a Python script;
- `statement` finds the task in words;
- `scan` looks through the evaluator: what it calls of a program, what it imports, and whether it
  does what can't be split;
- `neighbours` are the folder's modules that programs may import;
- `environment` are the variables that the evaluator asks for, `limits` its time and memory;
- `fault` says where a folder is to be mended whose initial program fails;
- `reading` puts these together.

Whether an evaluator can be split from the program is known for certain when it has judged the
initial program once: ``engine.evaluation.rehearsal``.
"""

from engine.problem.peers.fault import fault_of
from engine.problem.peers.reading import read_peer
from engine.problem.peers.recognise import PeerFolder, find
