#!/bin/sh
# The Python of Spark's workers in a local session (worker_python.py says when and why): as Spark
# starts it, but without pyspark.zip in PYTHONPATH, wherever that is the one which is named here.
given=$PYTHONPATH: PYTHONPATH=
while [ "$given" ]; do
    place=${given%%:*} given=${given#*:}
    if [ "$place" ] && ! [ "$place" -ef "$KAFKALOG_WORKER_PYSPARK_ZIP" ]; then
        PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$place
    fi
done
exec "${KAFKALOG_WORKER_PYTHON:?is not set}" "$@"
