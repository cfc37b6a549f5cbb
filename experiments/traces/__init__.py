"""Steps of measured jobs, replayed and forecast from the durations of their operations. Run as `python -m experiments.traces`."""
