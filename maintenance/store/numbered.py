"""`Numbered`: names of files that have a number, so that a listing of a folder tells which is the newest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Numbered:
    """Names of one kind; all are equally long, so that their order is that of their numbers.

    ``part``: a regular expression of what stands behind the name while a file is written under another one.

    >>> manifests = Numbered("manifest-", 12, ".json", r"\\.part")
    >>> manifests.name(7)
    'manifest-000000000007.json'
    >>> [manifests.number(name) for name in (manifests.name(7), "manifest-7.json", "notes")]
    [7, None, None]
    >>> manifests.number_of_part("manifest-000000000007.json.part")
    7
    """

    prefix: str
    digits: int
    suffix: str = ""
    part: str = ""

    def name(self, number: int) -> str:
        """Raises ValueError for a number that has no name."""
        if not 0 <= number < 10**self.digits:
            raise ValueError(
                f"{self.prefix}...{self.suffix} has a number from 0 to below 10**{self.digits}, not {number}"
            )
        return f"{self.prefix}{number:0{self.digits}}{self.suffix}"

    def number(self, name: str) -> int | None:
        """The number of a complete file; None for other names."""
        match = self._pattern.fullmatch(name)
        return None if match is None or match[2] else int(match[1])

    def number_of_part(self, name: str) -> int | None:
        """The number of a file that is being written, or was when that was stopped; None for other names."""
        match = self._pattern.fullmatch(name)
        return int(match[1]) if match is not None and match[2] else None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        number = rf"{re.escape(self.prefix)}([0-9]{{{self.digits}}}){re.escape(self.suffix)}"
        return re.compile(f"{number}({self.part or '(?!)'})?")
