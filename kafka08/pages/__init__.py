"""A cluster as pages for a browser: a report in one file, and the console that serves it live.

Both have the same pages (static/console.js, of static/parts.js), which show an `overview`
(overview.py, pure) and ask for details. The report is one file (report.py) that contains the
answers (details.py), and the data with which the next report compares. The pages insert everything
from Kafka as text, never as HTML.
"""

from kafka08.pages.overview import Overview, overview_of
from kafka08.pages.report import page_of, read_report
from kafka08.pages.trends import Trends

__all__ = ["Overview", "Trends", "overview_of", "page_of", "read_report"]
