//! The pictures of the documentation, from runs of the clinic study: `make figures`.
//!
//! Everything that is run repeats bit for bit, and coordinates are written with two decimals: the same files every time.
#![allow(clippy::disallowed_methods, reason = "pictures for people")]

mod clinic;
mod convergence;
mod recycling;
mod staircase;

use std::fs;
use std::path::Path;

fn main() -> Result<(), clinic::Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    fs::create_dir_all(&folder)?;
    let study = clinic::study()?;
    fs::write(folder.join("recycling.svg"), recycling::draw(&study)?)?;
    fs::write(folder.join("convergence.svg"), convergence::draw(&study)?)?;
    println!("wrote docs/images/recycling.svg and docs/images/convergence.svg");
    Ok(())
}
