"""Discovery: facts about columns that nobody declared, bought with a budget of their own."""

from dpmerf.discovery.discovery import Discovery
from dpmerf.discovery.purchase import Purchase

__all__ = ["Discovery", "Purchase"]
