"""What is in a log, without a judgement: what its batch headers tell of bytes, times, codecs and
delete horizons, what its records tell of tombstones and keys, and what the records of internal
topics tell of other logs (commits, transactions, uploads).
"""
