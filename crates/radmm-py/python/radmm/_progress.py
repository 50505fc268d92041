"""Progress bars for work that takes a while."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

#: A function that is called with the steps that are done, the steps in all (0 if unknown), and a short message.
ProgressFunction = Callable[[int, int, str], None]

#: ``"auto"`` shows a bar where somebody can see it and tqdm is installed; a function is called; ``False`` shows nothing.
Progress = Literal["auto"] | bool | ProgressFunction


@contextmanager
def shown(progress: Progress, title: str) -> Iterator[ProgressFunction | None]:
    """Yields the function that shows progress, or ``None``."""
    if callable(progress):
        yield progress
        return
    bar = _bar(progress, title)
    if bar is None:
        yield None
        return

    def update(steps: int, total: int, message: str) -> None:
        if total and bar.total != total:
            bar.total = total
        # What is left out by an early end is done too.
        bar.update(steps - bar.n)
        if message:
            bar.set_postfix_str(message, refresh=False)

    with bar:
        yield update


def _bar(progress: Literal["auto"] | bool, title: str) -> Any:
    if progress is False or (progress == "auto" and not _is_seen()):
        return None
    try:
        with warnings.catch_warnings():
            # Without ipywidgets a notebook gets a bar of text, which needs no word.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        if progress is True:
            raise ImportError("progress=True needs tqdm: install it with pip install tqdm, or give a function") from None
        return None
    return tqdm(total=None, desc=title, leave=False, unit="step")


def _is_seen() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
