"""Schedules in time: a (max, +) recursion over random message times."""
