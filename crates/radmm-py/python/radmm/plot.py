"""Figures of results, for a notebook or a file.

>>> import radmm
>>> study = radmm.Study({"data": {"builtin": "clinic"}, "network": {"nodes": 5}, "privacy": {"epsilon": 1.0, "delta": 1e-5}})
>>> [figure.id for figure in radmm.plot.figures(study.run(progress=False))]
['accuracy', 'loss']
"""

from __future__ import annotations

from radmm._results import ComparisonResult, Figure, Plan, RunResult

__all__ = ["Figure", "figure", "figures"]


def figures(result: RunResult | ComparisonResult | Plan) -> list[Figure]:
    """Returns the figures of a result."""
    return result.figures


def figure(result: RunResult | ComparisonResult | Plan, id: str) -> Figure:
    """Returns the figure of a result with this id."""
    for one in result.figures:
        if one.id == id:
            return one
    known = ", ".join(one.id for one in result.figures)
    raise KeyError(f"there is no figure {id!r}; there are {known}")
