"""The problems that come with the project: one folder each, laid out as ``engine.problem`` says."""
