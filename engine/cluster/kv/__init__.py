"""The KV of a cluster's prompts: where it lies, and who computes it.

- `node_cache` is a machine's LMCache server, `ray_node_cache` the same as a Ray actor, and
  `node_caches` those of a run;
- `prefiller` is a process that only computes prompts, `prefilled` a decoder that has it do so.
"""
