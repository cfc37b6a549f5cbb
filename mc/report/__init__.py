"""What a run looks like to a person (a table) and to a program (JSON), and how far a long one has come."""

from mc.report.progress import progress as progress
from mc.report.run_json import run_json as run_json
from mc.report.run_table import run_table as run_table
