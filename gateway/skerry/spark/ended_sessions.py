"""What PySpark keeps of a session that has ended by itself, taken from it: it would give that session to whoever asks for another one."""

from __future__ import annotations

import warnings
from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession, SQLContext


def forget_ended() -> bool:
    """Forget a context that has stopped, as when a cluster gives it up, and a JVM that is gone. False: there is none such."""
    if _jvm_is_gone():
        _forget_context()
        with suppress(Py4JError, OSError):
            SparkContext._gateway.shutdown()  # type: ignore[union-attr]
        SparkContext._gateway = SparkContext._jvm = None
        return True
    if _has_stopped(SparkContext._active_spark_context):
        _forget_context()
        return True
    return False


def _jvm_is_gone() -> bool:
    # Of a JVM that somebody else has started (PYSPARK_GATEWAY_PORT) no process is known; that one is not ours to forget.
    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None


def _has_stopped(context: SparkContext | None) -> bool:
    """Also of one that was stopped before PySpark had made all of it."""
    java = getattr(context, "_jsc", None)
    return context is not None and (java is None or bool(java.sc().isStopped()))


def _forget_context() -> None:
    if SparkContext._active_spark_context is not None:
        with warnings.catch_warnings():
            # That its JVM cannot be asked to stop any more is known.
            warnings.simplefilter("ignore")
            SparkContext._active_spark_context.stop()
    # As SparkSession.stop does once it has asked the JVM, which may not be there.
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
