"""Tests of kafkalog.payloads."""
