"""The private centralised fit of diffprivlib: objective perturbation, one party with all rows."""

import warnings

import numpy as np
from common import answer, asked, objective, rows, timed
from diffprivlib.models import LogisticRegression

warnings.simplefilter("ignore")


def main():
    wanted = asked()
    sparse, labels = rows(wanted)
    dense, train = sparse.toarray(), wanted["train"]
    weight, ridge = wanted["weight"], wanted["ridge"]
    # radmm's ridge for a sum of losses. With scikit-learn 1.3 diffprivlib's is 1/(C n) for one.
    inverse = weight / train / ridge / train

    def fit(epsilon, seed):
        model = LogisticRegression(
            epsilon=epsilon, data_norm=1.0, C=inverse, max_iter=100_000, fit_intercept=False, random_state=seed
        )
        return timed(lambda: model.fit(dense[:train], labels[:train]))

    # Next to no noise: it must solve the problem that radmm solves.
    _, plain = fit(1e9, 0)
    value, _ = objective(dense[:train] * labels[:train, None], weight, ridge, plain.coef_[0])
    private = [fit(wanted["epsilon"], seed) for seed in range(wanted["repetitions"])]
    result = {
        "objective": float(value),
        "seconds": float(np.median([seconds for seconds, _ in private])),
        "accuracies": [float(model.score(dense[train:], labels[train:])) for _, model in private],
    }
    answer(result, "diffprivlib", "scikit-learn", "numpy", "scipy")


main()
