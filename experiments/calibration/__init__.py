"""Fits of published logs, scored on what they had not seen."""
