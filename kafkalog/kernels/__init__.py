"""Compiled loops over bytes and arrays: the floor where records are many and Python objects none.

The contract of every kernel here:

 - flat arrays in, caller-owned arrays out (`*_out`); a kernel allocates no result and keeps nothing
 - inputs may be read-only (Arrow's buffers are); a length read from bytes is never trusted, and
   every read is bounded by an `end`
 - nothing raises. The answer is how far it came, a status of `status.py`, and where it stopped; the
   floor above turns that into an error that names the file
 - null is a length of -1, an empty value a length of 0
 - kernels are valid Python: NUMBA_DISABLE_JIT=1 runs them interpreted, NUMBA_BOUNDSCHECK=1 checks
   every index of every array. An index from -1 down to -size counts from the end, as in Python, and
   is no error there. Copies that go around numba's arrays (`copying`) are loops in such a run. What
   is called by address no run can check: the room `native` holds its places against their buffers
   itself, always

A kernel is loaded when it is called first, and compiled then if it is not kept. numba is imported
where something has to be compiled. Read `jit.py` for the decorators, `varints.py` for how bytes are
read and `record_walk.py` for how a record is.
"""
