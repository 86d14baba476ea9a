"""Search: whom to change, how, and how many children; knows no model, no files and no clock.

What others use: ``search`` (ask and tell), ``population``, ``choice``, and the policies' packages.
"""
