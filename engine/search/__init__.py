"""Search: whom to change, how, and how many children; knows no model, no files and no clock."""

from engine.search.choice import Choice
from engine.search.population import FIRST_ITERATION, Entry
from engine.search.predictor import Expert, Guesses
from engine.search.search import Search
from engine.search.width import IterationOutcome

__all__ = ["FIRST_ITERATION", "Choice", "Entry", "Expert", "Guesses", "IterationOutcome", "Search"]
