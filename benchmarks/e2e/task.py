"""The task that every agent is given: a small file, two changes, and how each edit format says them."""

from __future__ import annotations

import difflib
import json
from typing import Any

NAME = "inventory.py"
FILE = '''"""What is in the warehouse: articles, their stock, and orders that take from it."""

from dataclasses import dataclass, field


@dataclass
class Article:
    name: str
    price_cents: int
    stock: int = 0


@dataclass
class Warehouse:
    articles: dict[str, Article] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def add(self, name: str, price_cents: int, stock: int = 0) -> Article:
        """Take a new article in; its stock grows where it is known."""
        article = self.articles.get(name)
        if article is None:
            article = self.articles[name] = Article(name, price_cents)
        article.stock += stock
        self.log.append(f"added {stock} of {name}")
        return article

    def order(self, name: str, number: int) -> int:
        """Take ``number`` articles out; what they cost in cents."""
        article = self.articles[name]
        article.stock -= number
        self.log.append(f"ordered {number} of {name}")
        return article.price_cents * number

    def value_cents(self) -> int:
        """What all that is in stock is worth."""
        total = 0
        for article in self.articles.values():
            total += article.price_cents * article.stock
        return total

    def report(self) -> str:
        """A line for each article, by name."""
        lines = []
        for name in sorted(self.articles):
            article = self.articles[name]
            lines.append(f"{article.name}: {article.stock} at {article.price_cents / 100:.2f}")
        return "\\n".join(lines)


@dataclass
class Supplier:
    name: str
    days: int
    articles: list[str] = field(default_factory=list)


class Purchasing:
    """Orders what runs low, from whoever delivers it fastest."""

    def __init__(self, warehouse: Warehouse, least: int = 5) -> None:
        self.warehouse = warehouse
        self.least = least
        self.suppliers: list[Supplier] = []
        self.pending: list[tuple[int, str, int]] = []

    def register(self, name: str, days: int, *articles: str) -> Supplier:
        """Take a supplier in, with what it delivers."""
        if days < 1:
            raise ValueError(f"want a delivery in 1 day or more, got {days}")
        supplier = Supplier(name, days, list(articles))
        self.suppliers.append(supplier)
        return supplier

    def fastest(self, article: str) -> Supplier | None:
        """The supplier that delivers an article soonest; None where nobody does."""
        able = [supplier for supplier in self.suppliers if article in supplier.articles]
        return min(able, key=lambda supplier: supplier.days, default=None)

    def refill(self, today: int) -> list[str]:
        """Order up to twice the least of every article that runs low; the names of those nobody delivers."""
        missing = []
        waiting = {name for _, name, _ in self.pending}
        for name, article in self.warehouse.articles.items():
            if article.stock >= self.least or name in waiting:
                continue
            supplier = self.fastest(name)
            if supplier is None:
                missing.append(name)
            else:
                self.pending.append((today + supplier.days, name, 2 * self.least - article.stock))
        return missing

    def receive(self, today: int) -> int:
        """Put what has arrived into stock; how many articles that was."""
        arrived = [entry for entry in self.pending if entry[0] <= today]
        self.pending = [entry for entry in self.pending if entry[0] > today]
        for _, name, number in arrived:
            article = self.warehouse.articles[name]
            self.warehouse.add(name, article.price_cents, number)
        return sum(number for _, _, number in arrived)


def read_stock(lines: list[str]) -> Warehouse:
    """A warehouse from lines of name, price in cents and stock, with commas between; blank lines are left out."""
    warehouse = Warehouse()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 3:
            raise ValueError(f"line {number}: want name, price and stock, got {line!r}")
        name, price, stock = parts
        warehouse.add(name, int(price), int(stock))
    return warehouse


def write_stock(warehouse: Warehouse) -> list[str]:
    """The lines that ``read_stock`` reads, by name."""
    return [
        f"{article.name}, {article.price_cents}, {article.stock}"
        for article in sorted(warehouse.articles.values(), key=lambda article: article.name)
    ]
'''
CHANGES = (
    (
        "An order of more than is in stock must raise ValueError and change nothing.",
        """        article = self.articles[name]
        article.stock -= number
""",
        """        article = self.articles[name]
        if number > article.stock:
            raise ValueError(f"want at most {article.stock} of {name}, got an order of {number}")
        article.stock -= number
""",
    ),
    (
        "The report ends with a line that says what all of the stock is worth.",
        """        return "\\n".join(lines)
""",
        """        lines.append(f"in all: {self.value_cents() / 100:.2f}")
        return "\\n".join(lines)
""",
    ),
)
"""(what is wanted, old text, new text), one after the other."""


def states() -> list[str]:
    """The file before, after the first change, after both."""
    found = [FILE]
    for _, old, new in CHANGES:
        assert found[-1].count(old) == 1
        found.append(found[-1].replace(old, new))
    return found


def whole(number: int) -> str:
    """Aider's whole format: the file, after change ``number``."""
    return f"Here is the file with the change.\n\n{NAME}\n```\n{states()[number + 1]}```\n"


def diff(number: int) -> str:
    """Aider's diff format."""
    _, old, new = CHANGES[number]
    return f"I make this change.\n\n{NAME}\n```python\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```\n"


def udiff(number: int) -> str:
    """Aider's udiff format."""
    before, after = (text.splitlines(keepends=True) for text in states()[number : number + 2])
    lines = list(difflib.unified_diff(before, after, NAME, NAME))
    hunk = "".join("@@ ... @@\n" if line.startswith("@@") else line for line in lines)
    return f"```diff\n{hunk}```\n"


def call(name: str, **arguments: Any) -> str:
    """A tool call, as Hermes models write it."""
    told = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"Now this.\n<tool_call>\n{told}\n</tool_call>"
