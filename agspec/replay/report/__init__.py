"""What ``agspec bench`` and ``agspec simulate`` found: a table for the terminal, a page for the browser.

``table(result)`` and ``html_page(results, title=...)`` take the results as they are written with ``--json``. A key a
result lacks is absent data: its column or chart is left out.
"""

from agspec.replay.report.page import html_page
from agspec.replay.report.terminal import table

__all__ = ["html_page", "table"]
