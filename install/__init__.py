"""Makes and refreshes .venv; needs nothing but a Python with its standard library.

`setup.sh` finds the Python, `environment` builds what is missing, `stack` chooses between the
CPU and the CUDA packages, `checks` says what is missing on this machine, `sources` makes uv look
where pip looks, `lock` regenerates requirements/*.txt.

`reference` and `docs` write the documentation, and need .venv.
"""
