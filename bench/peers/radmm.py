"""R-ADMM without noise as a researcher would write it: dense rows, NumPy, primal problems by SciPy's L-BFGS-B.

With "newton" in place of "lbfgs", primal problems are solved by Newton's method with a dense Hessian and Cholesky factors.
"""

import numpy as np
from common import answer, asked, rows, timed
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import expit


# In seconds: a run that takes longer is not repeated.
PATIENCE = 20.0


class Party:
    def __init__(self, rows, weight, ridge):
        self.rows = rows
        self.scale = weight / len(rows)
        self.ridge = ridge

    def loss(self, f):
        return np.logaddexp(0.0, -(self.rows @ f)).mean()

    def primal(self, quadratic, linear, start, tolerance, method):
        """argmin O_i(f) + <linear, f> + quadratic/2 |f|^2, and the norm of the gradient there."""
        modulus = self.ridge + quadratic
        norm = np.inf

        def value_and_gradient(f):
            nonlocal norm
            margins = self.rows @ f
            value = self.scale * np.logaddexp(0.0, -margins).sum() + linear @ f + 0.5 * modulus * (f @ f)
            gradient = self.rows.T @ (-self.scale * expit(-margins)) + linear + modulus * f
            norm = np.linalg.norm(gradient)
            return value, gradient

        def stop(_):
            if norm <= tolerance:
                raise StopIteration

        if method == "newton":
            f = start.copy()
            for _ in range(50):
                _, gradient = value_and_gradient(f)
                if norm <= tolerance:
                    break
                margins = self.rows @ f
                curvatures = self.scale * expit(margins) * expit(-margins)
                hessian = (self.rows * curvatures[:, None]).T @ self.rows
                hessian[np.diag_indices_from(hessian)] += modulus
                f = f - cho_solve(cho_factor(hessian), gradient)
            return f, norm

        # The gradient's norm is what stops it; its own criteria would stop it earlier.
        options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 0.0, "gtol": 0.0, "maxcor": 20}
        f = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", callback=stop, options=options).x
        value_and_gradient(f)
        return f, norm


def run(parties, neighbours, wanted):
    eta, gamma, tolerance = wanted["penalty"], wanted["damping"], wanted["tolerance"]
    degrees = np.array([len(v) for v in neighbours], dtype=float)[:, None]
    adjacency = np.zeros((len(parties), len(parties)))
    for i, heard in enumerate(neighbours):
        adjacency[i, heard] = 1.0
    f = np.zeros((len(parties), parties[0].rows.shape[1]))
    duals, gradients = np.zeros_like(f), np.zeros_like(f)
    losses, norms = [], []
    for t in range(1, wanted["iterations"] + 1):
        heard = adjacency @ f
        if t % 2 == 1:
            quadratic = 2.0 * eta * degrees
            linear = 2.0 * duals - eta * (degrees * f + heard)
            for i, party in enumerate(parties):
                f[i], norm = party.primal(quadratic[i, 0], linear[i], f[i].copy(), tolerance, wanted["method"])
                norms.append(norm)
            gradients = -(linear + quadratic * f)
            duals = duals + eta / 2.0 * (degrees * f - adjacency @ f)
        else:
            step = gradients + 2.0 * duals + eta * (degrees * f - heard)
            f = f - step / (2.0 * eta * degrees + gamma)
        losses.append(float(np.mean([party.loss(f[i]) for i, party in enumerate(parties)])))
    return f, losses, norms


def main():
    wanted = asked()
    nodes = wanted["nodes"]
    sparse, labels = rows(wanted)
    folded = sparse.toarray() * labels[:, None]
    # Row r belongs to party r mod N.
    parties = [
        Party(np.ascontiguousarray(folded[i::nodes]), wanted["weight"], wanted["ridge"] / nodes) for i in range(nodes)
    ]
    neighbours = [[] for _ in range(nodes)]
    for i, j in wanted["edges"]:
        neighbours[i].append(j)
        neighbours[j].append(i)
    seconds, (models, losses, norms) = timed(lambda: run(parties, neighbours, wanted))
    taken = [seconds]
    while len(taken) < 3 and sum(taken) < PATIENCE:
        taken.append(timed(lambda: run(parties, neighbours, wanted))[0])
    result = {
        "seconds": float(np.median(taken)),
        "models": models.tolist(),
        "losses": losses,
        "largest_norm": float(np.max(norms)),
    }
    answer(result, "numpy", "scipy")


main()
