"""What results look like: to people as tables, to programs as JSON, in pictures and on a page; and how far a long run has come.

One file for each verb or kind of result has its tables and its JSON; `pictures` draws them, `html` puts them on a page. Numbers are
worked out elsewhere.
"""

from mc.report.progress import progress as progress
from mc.report.run_json import run_json as run_json
from mc.report.run_table import run_table as run_table
