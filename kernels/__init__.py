"""What scores programs, and what they are scored on.

Compiled kernels (``NAME.py``), each with a plain NumPy or exact reference (``NAME_reference.py``)
that the tests hold it against; exact arithmetic where floats are not enough
(``uncertainty*.py``, ``rounding.py``); and for the problems with hidden input or shared scoring
their data, read or generated (``*_data.py``, ``*_loads.py``, ``table.py``), and their cases
(``*_cases.py``).
"""
