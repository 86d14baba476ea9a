"""What scores programs, without the problems themselves (``evaluators``).

Compiled kernels (``NAME.py``), each with a plain NumPy or exact reference (``NAME_reference.py``)
that the tests hold it against, and exact arithmetic where floats are not enough.
"""
