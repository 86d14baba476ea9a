"""Prompts: what the model is asked, and how its answers are read. A file for each family of
operators; ``operator`` has their contract.
"""

from engine.prompts.operator import OPERATORS, Operator, Parsing, Tokenizer, make_operators
