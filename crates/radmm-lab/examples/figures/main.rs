//! Draws the images of the documentation from runs of the clinic study: `make figures`.
//!
//! Runs repeat bit for bit and coordinates have two decimals, so the files are the same every time.

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
