"""Refuses an interpreter on which the package's part in Rust does not load, before that fails in words that help nobody."""

import sys

if "t" in getattr(sys, "abiflags", ""):
    raise ImportError(
        "emend does not run on free-threaded builds of CPython: its part in Rust is of the stable interface (abi3), which they do "
        "not have. Use a build with the global interpreter lock: python3.13, not python3.13t"
    )
