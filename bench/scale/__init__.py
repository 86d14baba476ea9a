"""How far a run on a cluster scales: a simulation, and what it is checked against."""
