"""What is asked for: which partitions, by whose settings, and the plan these make of one.
Changes nothing.
"""
