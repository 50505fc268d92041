"""What all peers share: the rows that radmm wrote, its objective, and how results go back."""

import json
import sys
import time
from importlib import metadata

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_svmlight_file


def asked():
    """What the driver wants, one JSON object."""
    return json.loads(sys.argv[1])


def rows(wanted):
    """Sparse rows and labels of -1 and 1, from the very file that radmm reads."""
    return load_svmlight_file(wanted["rows"], n_features=wanted["columns"], zero_based=False)


def timed(work):
    """Seconds, and what came of it."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def objective(folded, weight, ridge, f):
    """radmm's objective (C/B) sum L + (rho/2)|f|^2 of rows with their labels folded in, and its gradient."""
    margins = folded @ f
    scale = weight / folded.shape[0]
    value = scale * np.logaddexp(0.0, -margins).sum() + ridge / 2.0 * (f @ f)
    gradient = folded.T @ (-scale * expit(-margins)) + ridge * f
    return value, gradient


def answer(result, *packages):
    """To the driver, with the versions that answered."""
    result["versions"] = {name: metadata.version(name) for name in packages}
    print(json.dumps(result))
