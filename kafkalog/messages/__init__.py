"""Kafka's generated messages as our tables, and one reader for all of them.

A message is a table of fields (`schema`) with their versions and tags; `decoder` reads any of them
in any of its versions, and nothing else knows how they are encoded. A topic's framing around its
messages is in the module of its tables (`cluster_metadata`).
"""
