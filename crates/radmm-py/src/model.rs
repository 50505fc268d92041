//! Trained models, and what they say about rows.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use radmm_data::{DataError, score_each};
use radmm_study::ModelFile;

use crate::failure::{Failure, guarded};
use crate::table::Table;

/// A trained linear model with the meaning of its columns.
#[pyclass(frozen, module = "radmm._radmm")]
pub(crate) struct Model(pub(crate) ModelFile);

#[pymethods]
impl Model {
    /// Reads the text of a model file; `name` is that of the file in messages.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str, name: &str) -> Result<Self, Failure> {
        guarded(py, || Ok(Self(ModelFile::parse(text, name)?)))
    }

    /// Returns the text of the model file.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// The names of the encoded columns, of which `(intercept)` is the last if there is one.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().columns()
    }

    /// The weights of the encoded columns.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.0.weights())
    }

    /// Whether the model has a constant column, the last one.
    #[getter]
    fn has_intercept(&self) -> bool {
        self.0.schema().intercept
    }

    /// The study that it was trained in.
    #[getter]
    fn study(&self) -> &str {
        self.0.study()
    }

    /// The party that trained it.
    #[getter]
    fn party(&self) -> &str {
        &self.0.trained().party
    }

    /// The number of iterations.
    #[getter]
    fn iterations(&self) -> u32 {
        self.0.trained().iterations
    }

    /// Whether the loss tells probabilities.
    #[getter]
    fn has_probabilities(&self) -> bool {
        self.0.probability(0.0).is_some()
    }

    /// The guarantee as `(epsilon, delta, protects, caveat)`.
    #[getter]
    fn guarantee(&self) -> Option<(f64, f64, bool, String)> {
        let guarantee = self.0.trained().guarantee.as_ref()?;
        let total = guarantee.total;
        let (protects, caveat) = (guarantee.protects, guarantee.caveat.clone());
        Some((total.epsilon, total.delta, protects, caveat))
    }

    /// Returns the score of every row, positive for the positive class; NaN for a row with a missing value.
    fn scores<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
    ) -> Result<Bound<'py, PyArray1<f64>>, Failure> {
        let scores = table.read(py, |rows| {
            let mut scores = Vec::with_capacity(rows.rows());
            score_each(rows, self.0.schema(), |row| -> Result<(), DataError> {
                scores.push(row.map_or(f64::NAN, |row| row.score(self.0.weights())));
                Ok(())
            })?;
            Ok::<_, DataError>(scores)
        })?;
        Ok(scores.into_pyarray(py))
    }

    /// Returns the probability of the positive class at each score; NaN where the loss has no probabilities.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        scores: PyReadonlyArray1<'py, f64>,
    ) -> Bound<'py, PyArray1<f64>> {
        let probability = |score: &f64| self.0.probability(*score).unwrap_or(f64::NAN);
        let all: Vec<f64> = scores.as_array().iter().map(probability).collect();
        all.into_pyarray(py)
    }
}
