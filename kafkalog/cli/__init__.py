"""The command line, without a JVM: `kafkalog VERB`, one module a verb with `run(args) -> exit
code`.

stdout is data, stderr is talk. Verbs are imported when they are called: `kafkalog --help` must not
wait for numpy or pyarrow.
"""
