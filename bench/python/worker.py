"""One side of the comparison: answers requests of the driver, one JSON object a line, until its input ends."""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

import numpy as np

Handler = Callable[..., dict[str, Any]]


def serve(handlers: Mapping[str, Handler]) -> None:
    """Answers requests `{"do": NAME, ...}` by the handler of that name."""
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        request = json.loads(line)
        answers.write(json.dumps(handlers[request.pop("do")](**request)) + "\n")
        answers.flush()


def versions(*packages: str) -> dict[str, str]:
    """Returns the versions of packages, and of Python."""
    return {"Python": sys.version.split()[0]} | {name: metadata.version(name) for name in packages}


def timed_fit(model: Any, rows: Any, labels: Any) -> float:
    """Fits a model, and returns the seconds that it took."""
    start = time.perf_counter()
    model.fit(rows, labels)
    return time.perf_counter() - start


def quality(model: Any, rows: Any, labels: Any) -> dict[str, float]:
    """Returns the accuracy of a fitted model, and the area under its ROC curve."""
    from sklearn.metrics import roc_auc_score

    scores = np.asarray(model.decision_function(rows))
    predicted = model.classes_[(scores > 0).astype(int)]
    is_positive = labels == model.classes_[1]
    return {"accuracy": float(np.mean(predicted == labels)), "auc": float(roc_auc_score(is_positive, scores))}
