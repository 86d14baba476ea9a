"""Outposts: processes with evaluators and no model.

- `outpost` is one, `ray_outpost` the same as a Ray actor, and `outposts` those of a run;
- `spread` has a worker's programs evaluated here and there.
"""
