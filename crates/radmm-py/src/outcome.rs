//! Results of studies, as text, JSON, pages and figures.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use radmm_cli::text;
use radmm_lab::{
    Certification, Comparison, ComparisonResult, Experiment, Forecast, Outcome, PrivacyStatement,
    ResultFile, StudyBill, final_model, report,
};
use radmm_node::evidence::Verification;
use radmm_report::{Block, Figure, Page};

use crate::failure::{Failure, guarded};
use crate::model::Model;

/// A figure as `(id, title, svg, csv)`.
type DrawnFigure = (String, String, String, String);

fn drawn(figure: &Figure) -> DrawnFigure {
    let (id, title) = (figure.id.clone(), figure.title.clone());
    (id, title, figure.to_svg(), figure.to_csv())
}

fn figures_of(page: &Page) -> Vec<DrawnFigure> {
    let blocks = page.sections.iter().flat_map(|section| &section.blocks);
    let figures = blocks.filter_map(|block| match block {
        Block::Figure(figure) => Some(drawn(figure)),
        _ => None,
    });
    figures.collect()
}

/// The headlines of a page as `(label, value, note)`.
fn headlines_of(page: &Page) -> Vec<(String, String, String)> {
    let headlines = page.headlines.iter();
    headlines
        .map(|one| (one.label.clone(), one.value.clone(), one.note.clone()))
        .collect()
}

/// The result of a simulated study, with its rows.
#[pyclass(frozen, module = "radmm._radmm")]
pub(crate) struct Simulated {
    pub(crate) experiment: Arc<Experiment>,
    pub(crate) outcome: Outcome,
    /// The folder that paths in the study are relative to.
    pub(crate) folder: PathBuf,
}

#[pymethods]
impl Simulated {
    /// Returns the text that `radmm run` prints.
    fn text(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || Ok(text::outcome(&self.experiment, &self.outcome)))
    }

    /// Returns `result.json`.
    fn json(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || {
            Ok(ResultFile::new(&self.experiment, &self.outcome).to_json())
        })
    }

    /// Returns `privacy-statement.json`.
    fn statement(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || {
            Ok(PrivacyStatement::new(&self.experiment, &self.outcome).to_json())
        })
    }

    /// Returns `report.html`.
    fn html(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || Ok(self.page().to_html()))
    }

    /// Returns the figures of the report.
    fn figures(&self, py: Python<'_>) -> Result<Vec<DrawnFigure>, Failure> {
        guarded(py, || Ok(figures_of(&self.page())))
    }

    /// Returns the headlines of the report.
    fn headlines(&self, py: Python<'_>) -> Result<Vec<(String, String, String)>, Failure> {
        guarded(py, || Ok(headlines_of(&self.page())))
    }

    /// The model of the first repetition; `None` if it stopped early.
    #[getter]
    fn model(&self, py: Python<'_>) -> Result<Option<Model>, Failure> {
        let first = &self.outcome.repetitions[0];
        guarded(py, || {
            Ok(final_model(self.experiment.study(), first).map(Model))
        })
    }

    /// The reason for which a repetition stopped early, if one did.
    #[getter]
    fn stopped(&self) -> Option<String> {
        let mut repetitions = self.outcome.repetitions.iter();
        repetitions.find_map(|repetition| repetition.stopped.clone())
    }

    /// Writes the files that `radmm run --out` writes, and returns their paths.
    fn save(&self, folder: PathBuf) -> Result<Vec<PathBuf>, Failure> {
        let (experiment, outcome) = (&self.experiment, &self.outcome);
        radmm_cli::write_results(&folder, &self.folder, experiment, outcome).map_err(Failure::Value)
    }
}

impl Simulated {
    fn page(&self) -> Page {
        report::run_page(&self.experiment, &self.outcome)
    }
}

/// The bill of a study.
#[pyclass(frozen, module = "radmm._radmm")]
pub(crate) struct Priced(pub(crate) StudyBill);

#[pymethods]
impl Priced {
    /// Returns the text that `radmm privacy` prints.
    fn text(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || Ok(text::bill(&self.0)))
    }

    /// Returns what `radmm privacy --json` prints.
    fn json(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || Ok(self.0.to_json()))
    }
}

/// A forecast of accuracy.
#[pyclass(frozen, module = "radmm._radmm")]
pub(crate) struct Forecasted(pub(crate) Forecast);

#[pymethods]
impl Forecasted {
    /// Returns the text that `radmm plan` prints.
    fn text(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || Ok(text::forecast(&self.0)))
    }

    /// Returns what `radmm plan --json` prints.
    fn json(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || to_json(&self.0))
    }

    /// Returns the page that `radmm plan --out` writes.
    fn html(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || Ok(self.0.page().to_html()))
    }

    /// Returns the figures of the page.
    fn figures(&self, py: Python<'_>) -> Result<Vec<DrawnFigure>, Failure> {
        guarded(py, || Ok(vec![drawn(&self.0.figure())]))
    }
}

/// A check of convergence.
#[pyclass(frozen, module = "radmm._radmm")]
pub(crate) struct Certified(pub(crate) Certification);

#[pymethods]
impl Certified {
    /// Returns the text that `radmm certify` prints.
    fn text(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || Ok(text::certification(&self.0)))
    }

    /// Returns what `radmm certify --json` prints.
    fn json(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || Ok(self.0.to_json()))
    }
}

/// A comparison of studies at equal total privacy.
#[pyclass(frozen, module = "radmm._radmm")]
pub(crate) struct Compared {
    pub(crate) comparison: Comparison,
    pub(crate) result: ComparisonResult,
}

#[pymethods]
impl Compared {
    /// Returns the text that `radmm compare` prints.
    fn text(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || Ok(text::comparison(&self.comparison, &self.result)))
    }

    /// Returns what `radmm compare --json` prints.
    fn json(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || to_json(&self.result))
    }

    /// Returns the page that `radmm compare --out` writes.
    fn html(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || Ok(self.result.page(&self.comparison).to_html()))
    }

    /// Returns the figures of the page.
    fn figures(&self, py: Python<'_>) -> Result<Vec<DrawnFigure>, Failure> {
        guarded(py, || Ok(vec![drawn(&self.result.figure())]))
    }
}

/// A check of files that parties show.
#[pyclass(frozen, module = "radmm._radmm")]
pub(crate) struct Verified {
    pub(crate) verification: Verification,
    /// The δ of the study.
    pub(crate) delta: f64,
}

#[pymethods]
impl Verified {
    /// Returns the text that `radmm verify` prints.
    fn text(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || {
            Ok(text::verification(&self.verification, self.delta))
        })
    }

    /// Returns what `radmm verify --json` prints.
    fn json(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || Ok(text::verification_json(&self.verification)))
    }
}

fn to_json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    text.map_err(|error| Failure::Bug(error.to_string()))
}
