"""Learning from the islands of all workers.

- `island_learner` hands in what an island has judged, and has it take over what was learned;
- `shared_learner` has one trainer learn from all of them: `shared_update` is a step of it;
- `teacher` is between the two, in the driver: `recorded` is what it finds in the logs at first;
- `remote_trainer` keeps that trainer alive, wherever it is: `trainer_actor` is its process, and
  `ray_trainer` the same as a Ray actor.
"""
