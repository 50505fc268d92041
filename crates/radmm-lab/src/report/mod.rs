//! The pages of runs, comparisons and audits, in the plots and tables of `radmm-report`.

mod audit;
mod compare;
mod iteration_plots;
mod run;
pub mod tables;

pub use run::run_page;
