"""Dossier: a dated, printable document about one release, for the people who have to sign for it."""

from dpmerf.dossier.content import Dossier, LedgerFacts, make_dossier
from dpmerf.dossier.dossier_page import html
from dpmerf.dossier.pdf import pdf

__all__ = ["Dossier", "LedgerFacts", "html", "make_dossier", "pdf"]
