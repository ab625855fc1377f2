"""Report: one self-contained HTML page about a release, its model and (where given) real rows."""

from dpmerf.report.make import make_report
from dpmerf.report.page import Report
from dpmerf.report.sections import ImageSection

__all__ = ["ImageSection", "Report", "make_report"]
