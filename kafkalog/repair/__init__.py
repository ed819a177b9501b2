"""Putting a partition right: what lies beside its segments made anew, or a sound copy of what is
left of them.
"""
