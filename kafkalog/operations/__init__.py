"""The verbs, one module each and named as the verb: a request, its plan, the run, the result.

`run_steps.py` is what every run does around its partitions, `run_frame.py` what all results have in
common.
"""
