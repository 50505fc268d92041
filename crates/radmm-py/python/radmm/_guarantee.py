"""What is promised to the people in the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

#: The neighbouring relation of every guarantee of this package.
RELATION = "one row of one party replaced"


@dataclass(frozen=True)
class Guarantee:
    """A total (ε, δ) with everything that is needed to read it."""

    #: ε, the total over everything in ``scope``.
    epsilon: float
    #: δ; 0 for a pure total.
    delta: float
    #: The data sets that are hard to tell apart.
    relation: str
    #: What the total covers.
    scope: str
    #: Whether it protects anybody: not in a simulation, and not where bounds were read off the rows.
    protects: bool
    #: Why it does, or does not.
    reason: str

    def __str__(self) -> str:
        # Rounded up: the text never says less than was spent.
        epsilon = "∞" if math.isinf(self.epsilon) else f"{math.ceil(self.epsilon * 1e4 - 1e-9) / 1e4:.4f}"
        verdict = "protects" if self.protects else "protects nobody"
        return f"ε = {epsilon} at δ = {self.delta:g}, for {self.relation}; {self.scope}; {verdict}: {self.reason}"
