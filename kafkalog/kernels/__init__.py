"""Compiled loops over bytes and arrays: the floor where records are many and Python objects none.

The contract of every kernel here:

 - flat arrays in, caller-owned arrays out (`*_out`); a kernel allocates no result and keeps nothing
 - inputs may be read-only (Arrow's buffers are); a length read from bytes is never trusted, and
   every read is bounded by an `end`
 - nothing raises. The answer is how far it came, a status of `status.py`, and where it stopped; the
   floor above turns that into an error that names the file
 - null is a length of -1, an empty value a length of 0
 - kernels are valid Python: NUMBA_DISABLE_JIT=1 runs them interpreted, NUMBA_BOUNDSCHECK=1 checks
   every index

Importing a kernel compiles it or loads it from numba's cache on disk, so what must start quickly
imports them late. Read `jit.py` for the decorators, `varints.py` for how bytes are read.
"""
