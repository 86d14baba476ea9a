"""What a run has to do with here, and what would stop it: a finding for each.

`machine` looks at cores, memory, disks and limits, `packages` at versions, `model` at weights and
caches, `sandbox` at the problem and the walls. What a run checks before it begins is asked last.
Nothing imports vLLM, but for the memory of a GPU and for the names in ``model.engine``, so that it
works where vLLM does not. `examined` is the door.
"""

from engine.doctor.examination import examined
