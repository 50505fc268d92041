//! The pages of runs, comparisons and audits, made of the plots and tables of `radmm-report`.

mod audit;
mod compare;
mod forecast;
mod grid;
mod headlines;
mod iteration_plots;
mod run;
pub mod tables;
mod weights;

pub use run::run_page;
