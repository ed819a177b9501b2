"""The one room that changes a log dir: putting new segments in place, and back.

Read in this order: `swap.py` (the steps of the change, and what a crash between two of them
leaves), `replacement.py` (the record of what replaces what, written before the first file moves),
`interrupted_swap.py` (finishing or undoing what a crash left), `undo_swap.py` (putting back what a
run replaced), `segment_deletion.py` (what retention removes).

Guarantees, each with a test:

* A run that fails or is killed at any step leaves a directory that a broker loads with nothing
  lost; the next run finishes or undoes the swap it finds.
* A task that finds other files than its plan was made from, or whose log dir lock is gone, stops
  before it changes anything.
"""
