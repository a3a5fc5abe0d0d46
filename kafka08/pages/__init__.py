"""A cluster as pages for a browser: a report in one file, and the console that serves it live.

Both show the `overview` (overview.py, pure) of what exporter and doctor read, drawn by the same
script (static/parts.js). The report is that as one file (report.py); it has in it what the next
report compares with (kept.py). Whatever comes from Kafka goes into the pages as text, never as
HTML.
"""

from kafka08.pages.overview import Overview, overview_of
from kafka08.pages.report import page_of, read_report
from kafka08.pages.trends import Trends

__all__ = ["Overview", "Trends", "overview_of", "page_of", "read_report"]
