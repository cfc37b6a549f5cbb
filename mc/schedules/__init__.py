"""Schedules: who sends what to whom in which round, as arrays."""
