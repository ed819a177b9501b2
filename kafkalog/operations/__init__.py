"""The verbs, one module each and named as the verb: a request, its plan, the run, the result.

`frame.py` is what all verbs that change logs do alike (locks, journal, what earlier runs left),
`run_steps.py` has its steps, `run_frame.py` what all results have in common.
"""
