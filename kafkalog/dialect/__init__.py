"""Spark's SQL, translated for DuckDB: `translation` is what the engine calls, the other modules
have the rules for each kind of expression and clause.

What has no rule is refused. So a rule is a claim that both engines give the same rows, names and
types, and has its row in the tests, which run it on both.
"""
