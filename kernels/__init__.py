"""Compiled kernels that score programs, each beside a plain NumPy reference of the same name."""
