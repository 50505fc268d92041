"""Estimators for scikit-learn: private linear classifiers for two classes.

`PrivateLinearClassifier` learns from the rows of one party, with noise that nobody can repeat and a ledger of everything that was
ever asked: it protects. `RecycledADMMClassifier` simulates a network of parties; it tells what they would get, and protects nobody.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, column_or_1d

from radmm import _radmm
from radmm._classifier import (
    LinearClassifier,
    as_array,
    learnt_before,
    seed_of,
    threads_of,
    unused_name,
    warn_of_dropped,
)
from radmm._columns import Bounds, Categories, Encoding, Meaning
from radmm._guarantee import RELATION, Guarantee
from radmm._model import Model
from radmm._progress import shown
from radmm._rows import Rows, with_codes
from radmm._study import Study, toml_of
from radmm._workers import CountedRows, Schema, WorkerRows
from radmm.errors import DataError, LedgerWarning, PublicBoundsWarning

__all__ = ["PrivateLinearClassifier", "RecycledADMMClassifier"]

#: Limits that may admit one fit, in units of its ε. A ledger adds up answers that are chosen one after the other, which costs more
#: than a fit that is planned beforehand: a hundredth of the limit is set aside for rounding (docs/privacy.md, Theorem 9). The first
#: is enough unless ε is very large or very small.
_ROOMS_FOR_ONE_FIT = (1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0, 8.0, 16.0)

#: The name of the column that tells whose a row is, unless a feature has it.
_PARTY = "party"


class PrivateLinearClassifier(LinearClassifier):
    """A linear classifier that protects the rows it learns from, by (ε, δ)-differential privacy.

    All rows belong to one party. Noise is drawn from the operating system, and nobody can repeat it. Every question to the rows is
    on disk in the ledger before it is answered: a second fit on the same rows is charged on top, and refused at the limit. A fit that
    is killed is resumed by the same fit, with the answers that were charged; one that has finished is in the folder ``fits`` of the
    ledger.

    Parameters
    ----------
    epsilon, delta
        The total of a fit, over everything that it releases, for one row replaced. With ``delta=0`` the total is pure.
    bounds
        Public bounds of the numeric columns: a pair ``(least, greatest)`` of numbers, or of arrays with one number a column, or a
        dictionary of pairs by column. Values beyond are clipped. ``None`` reads them off the rows, which no guarantee covers.
    categories
        Public vocabularies of the other columns, by name. Those that are not given are read off the rows.
    ledger
        The folder of the durable ledger, made if need be. ``None`` keeps no ledger: the guarantee is that of this fit alone.
    limit
        The most that all fits with the ledger may have cost after this one, as ε at this ``delta``. ``None`` leaves room for one fit
        with these parameters and no more: 1.02 times ``epsilon`` (more at an extreme ``epsilon``), since the ledger sets a hundredth
        aside for rounding, or ``epsilon`` itself with ``delta=0``. What is promised of all fits together is the largest limit that
        was ever given, with the sum of the different ``delta``.
    encoding
        ``"splines"`` or ``"bins"`` give a numeric column several weights, ``"linear"`` one. ``"auto"`` takes splines, and one weight
        where rows are few.
    loss
        ``"auto"``, ``"smooth-hinge"``, ``"cut-logistic"`` or ``"logistic"``. The last two tell probabilities.
    random_state
        ``None`` draws noise that nobody can repeat. A seed makes a rehearsal that repeats, and protects nobody; it has no ledger.
    n_jobs
        The number of threads; ``None`` takes all cores.
    verbose
        With 1, a progress bar.

    Attributes
    ----------
    coef_, intercept_
        The weights of the encoded columns, whose names are ``columns_``.
    classes_, n_features_in_, feature_names_in_, n_iter_
        As in scikit-learn.
    guarantee_
        What is promised, and whether it protects.
    ledger_
        What all fits with the ledger have cost, read at this ``delta``, as ``(epsilon, delta, limit)``.
    model_, study_text_
        The model as a `Model`, and the study of the fit as TOML, with everything that public rules chose.
    """

    ledger_: tuple[float, float, float]
    study_text_: str

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        bounds: Bounds | None = None,
        categories: Categories | None = None,
        ledger: str | PathLike[str] | None = None,
        limit: float | None = None,
        encoding: Encoding = "auto",
        loss: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.ledger = ledger
        self.limit = limit
        self.encoding = encoding
        self.loss = loss
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Rows, y: Any) -> PrivateLinearClassifier:
        """Learns from rows and their labels. The classes are taken to be public.

        Of rows that workers hold (`radmm.ray.Rows`), ``y`` is the name of the label's column; ``bounds`` and ``categories`` name the
        columns that are learnt from.
        """
        if self.ledger is not None and not os.fspath(self.ledger):
            raise ValueError("ledger='': give the name of a folder, or None")
        if self.ledger is not None and self.random_state is not None:
            raise ValueError(
                "random_state makes noise that repeats and protects nobody: a ledger has no place for it; leave one of the two out"
            )
        if self.ledger is None and self.random_state is None:
            warnings.warn(
                "there is no ledger: this fit counts no others on the same rows, and no other counts it; give a folder as ledger",
                LedgerWarning,
                stacklevel=2,
            )
        with self._whole_or_unchanged():
            learnt = learnt_before()
            if learnt:
                warnings.warn(
                    f"the pipeline learnt from the rows before this fit got them ({', '.join(learnt)}), and no guarantee covers what"
                    " that tells; use steps that learn nothing, and bounds and categories that are known without the rows",
                    PublicBoundsWarning,
                    stacklevel=2,
                )
            table: _radmm.Table | CountedRows
            table, meaning = self._prepare_worked(X, y) if isinstance(X, WorkerRows) else self._prepare(X, y)
            meaning = replace(meaning, read_off=meaning.read_off or bool(learnt))
            dropped = self._fit(table, meaning)
        warn_of_dropped(dropped, table.rows)
        return self

    def _is_answered_once(self) -> bool:
        return self.delta == 0

    def _study_text(self, meaning: Meaning, rows: int, seed: int | None) -> str:
        """Returns the study of a fit."""
        study: dict[str, Any] = {"data": meaning.data, **self._terms()}
        if seed is not None:
            study["run"] = {"seed": seed}
        if self._is_answered_once():
            # A pure total pays for every answer in full: one, with the noise in the objective, tells the most.
            study["problem"] = {"loss": "smooth-hinge" if self.loss == "auto" else self.loss}
            ridge, noise = _radmm.one_answer(toml_of(study), rows, float(self.epsilon))
            study["privacy"] |= {"mechanism": "objective", "noise": noise}
            study["algorithm"] = {"name": "local", "extra_ridge": ridge, "iterations": 1}
        return toml_of(study)

    def _limits(self) -> list[float]:
        """Returns candidates for the limit, of which the first that leaves room for one fit is taken."""
        if self.limit is not None:
            if isinstance(self.limit, bool) or not isinstance(self.limit, Real) or not 0 < self.limit < np.inf:
                raise ValueError(f"limit={self.limit!r}: a finite number above 0 is needed")
            return [float(self.limit)]
        return [float(self.epsilon) * room for room in (_ROOMS_FOR_ONE_FIT if self.delta > 0 else (1.0,))]

    def _fit(self, table: _radmm.Table | CountedRows, meaning: Meaning) -> int:
        """Fits, takes the result over, and returns the number of rows that were left out."""
        ledger = None if self.ledger is None else Path(self.ledger)
        seed = None if self.random_state is None else seed_of(self.random_state)
        text = self._study_text(meaning, table.rows, seed)
        with shown(bool(self.verbose), "fit") as show:
            limits, delta, threads = self._limits(), float(self.delta), threads_of(self.n_jobs)
            asked = (ledger, limits, delta, seed, meaning.read_off, threads, show)
            if isinstance(table, CountedRows):
                held = table.load(Schema(text, alone=True))
                with closing(held.workers):
                    fit = _radmm.fit_one_party(text, held.table, *asked)
            else:
                fit = _radmm.fit_one_party(text, table, *asked)
        self.study_text_ = fit.study
        self.ledger_ = fit.ledger[0]
        scope = "total over everything that this fit released"
        if ledger is None:
            scope += "; without a ledger, other fits on the same rows are not counted"
        reason = fit.caveat
        if fit.rows < table.rows:
            reason += f"; {fit.rows} rows were complete, and their number is taken to be public"
        before = fit.uncovered - meaning.read_off
        if ledger is not None and before:
            reason += f"; bounds of other fits with this ledger ({before}) were read off the rows, which no total of all fits covers"
        self.guarantee_ = Guarantee(fit.epsilon, fit.delta, RELATION, scope, fit.protects, reason)
        self._take(Model(fit.model))
        return table.rows - fit.rows


class RecycledADMMClassifier(LinearClassifier):
    """A simulated network of parties that train one linear classifier by Recycled ADMM or a relative of it.

    It tells how accurate a network would be at a total ε. It protects nobody: all rows are in this process, and the noise
    repeats from ``random_state``. The result is that of ``radmm run`` on ``study_``, to the bit.

    Parameters
    ----------
    epsilon, delta
        The total of every party, over every message of the whole run, for one row of one party replaced.
    n_parties
        The number of parties among which rows are dealt out.
    parties
        Whose a row is: the name of a column, which is then no feature, or one label a row. Labels may be given to ``fit`` instead,
        so that a cross-validation splits them with the rows.
    graph
        The shape of the network: a name such as ``"ring"``, ``"complete"`` or ``"auto"``, a ``[network]`` as a dictionary, or a list
        of edges.
    algorithm
        ``"auto"``, a name such as ``"consensus"`` or ``"r-admm"``, or an ``[algorithm]`` as a dictionary.
    bounds, categories, encoding, loss, n_jobs, verbose
        As in `PrivateLinearClassifier`.
    random_state
        The seed of the noise and of the deal. ``None`` takes another one for each fit.

    Attributes
    ----------
    coef_, intercept_, columns_, classes_, n_features_in_, feature_names_in_, n_iter_, model_
        As in `PrivateLinearClassifier`. The model is the mean of the parties'.
    guarantee_
        The total, which protects nobody in a simulation.
    parties_
        The names of the parties, and their numbers of rows.
    study_
        The `Study` that was simulated.
    """

    parties_: dict[str, int]
    study_: Study
    seed_: int

    _party_count: int

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        n_parties: int = 5,
        parties: str | ArrayLike | None = None,
        graph: str | Mapping[str, Any] | Sequence[tuple[int, int]] = "ring",
        algorithm: str | Mapping[str, Any] = "auto",
        bounds: Bounds | None = None,
        categories: Categories | None = None,
        encoding: Encoding = "auto",
        loss: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_parties = n_parties
        self.parties = parties
        self.graph = graph
        self.algorithm = algorithm
        self.bounds = bounds
        self.categories = categories
        self.encoding = encoding
        self.loss = loss
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Rows, y: Any, parties: ArrayLike | None = None) -> RecycledADMMClassifier:
        """Simulates the network on rows and their labels; ``parties`` tells whose each row is."""
        if isinstance(X, WorkerRows):
            raise ValueError(
                "a simulation holds the rows of all parties in this process: give it a table, as that of pandas.read_parquet; rows"
                " that workers hold are for PrivateLinearClassifier and Party"
            )
        labels = self.parties if parties is None else parties
        column = labels if isinstance(labels, str) else None
        if isinstance(labels, str):
            labels = self._column(X, labels)
        with self._whole_or_unchanged():
            table, meaning = self._prepare(X, y, left_out=column)
            table, meaning.data["split"] = self._deal(table, labels)
            dropped = self._fit(table, meaning)
        warn_of_dropped(dropped, table.rows)
        return self

    def _column(self, X: Rows, name: str) -> Any:
        """Returns the column of a data frame that tells whose a row is."""
        try:
            return X[name]
        except (KeyError, IndexError, TypeError):
            raise ValueError(f"parties={name!r}: X has no column of this name; give one label a row") from None
        except Exception as error:
            raise ValueError(f"parties={name!r}: X has no column of this name: {error}") from error

    def _deal(self, table: _radmm.Table, labels: ArrayLike | None) -> tuple[_radmm.Table, dict[str, Any]]:
        """Returns the table with whose each row is, and ``[data.split]``."""
        self.seed_ = seed_of(self.random_state)
        if labels is None:
            if table.rows < self.n_parties:
                raise ValueError(f"n_samples={table.rows} is less than n_parties={self.n_parties}: every party needs rows")
            self._party_count = int(self.n_parties)
            return table, {"method": "shuffled", "seed": self.seed_}
        labels = column_or_1d(as_array(labels))
        check_consistent_length(np.empty(table.rows), labels)
        distinct, codes = np.unique(labels, return_inverse=True)
        names = [str(one).strip() for one in distinct]
        if "" in names or len(set(names)) < len(names):
            raise ValueError(f"parties: their names must differ, and none may be empty: {names}")
        self._party_count = len(names)
        column = unused_name(_PARTY, [*self._names, self._label])
        table = with_codes(table, column, codes, names)
        return table, {"method": "column", "name": column, "values": names}

    def _method(self) -> dict[str, Any]:
        if isinstance(self.algorithm, Mapping):
            return {"algorithm": dict(self.algorithm)}
        return {} if self.algorithm == "auto" else {"algorithm": {"name": self.algorithm}}

    def _network(self) -> dict[str, Any]:
        nodes = self._party_count
        if nodes < 2:
            raise ValueError(f"a network has at least two parties, and there is {nodes}")
        if isinstance(self.graph, str):
            return {"nodes": nodes, "topology": self.graph}
        if isinstance(self.graph, Mapping):
            return {"nodes": nodes, **self.graph}
        return {"nodes": nodes, "edges": [[int(one), int(other)] for one, other in self.graph]}

    def _fit(self, table: _radmm.Table, meaning: Meaning) -> int:
        """Simulates, takes the result over, and returns the number of rows that were left out."""
        study = Study(
            {
                "name": type(self).__name__,
                "data": meaning.data,
                "network": self._network(),
                **self._terms(),
                **self._method(),
                "run": {"repetitions": 1, "seed": self.seed_},
            }
        )
        result = study.run(rows=table, baselines=False, threads=threads_of(self.n_jobs), progress=bool(self.verbose))
        model = result.model
        if model is None:
            raise DataError(f"the run stopped early: {result.stopped}")
        content = result.to_dict()
        self.parties_ = {node["name"]: node["rows"] for node in content["nodes"]}
        self.study_ = study
        guarantee = result.guarantee
        reason = guarantee.reason
        if meaning.read_off:
            reason += "; and bounds or vocabularies were read off the rows"
        self.guarantee_ = Guarantee(guarantee.epsilon, guarantee.delta, guarantee.relation, guarantee.scope, False, reason)
        self._take(model)
        return int(content["data"]["dropped"])
