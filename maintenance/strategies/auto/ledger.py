"""The account by which a choice of two is changed: what the other would have saved.

Design: docs/design/strategies.md section 1.

Two ways of doing the same work have their costs, step by step; going over to the other way
costs something too.  ``balance`` is what has been lost by the way in use, less what has been
won by it, never further from 0 than the price of going over.  When that much has been lost,
it is time.  (The work function algorithm of a task system of two states: whatever comes,
the cost is at most three times that of the best sequence of ways, and one price.)
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Ledger:
    """``price``: of going over, in operations."""

    price: float
    balance: float = 0.0

    def enter(self, active: float, other: float) -> None:
        """A step's cost by the way in use, and what the other one is taken to cost."""
        self.balance = min(self.price, max(-self.price, self.balance + active - other))

    @property
    def says_change(self) -> bool:
        """Whether the way in use has lost the price of going over."""
        return self.balance >= self.price

    def changed(self, price: float) -> None:
        """The other way is in use now.  Twice the price has to be lost before the way back."""
        self.price = price
        self.balance = -price
