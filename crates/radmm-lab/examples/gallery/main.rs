//! Every kind of figure and block on invented numbers, to be looked at: `cargo run -p radmm-lab --example gallery -- DIR`.

mod sample;

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = env::args().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| io::Error::other("name a folder for the files"))?;
    fs::create_dir_all(&folder)?;
    for figure in sample::figures() {
        fs::write(folder.join(format!("{}.svg", figure.id)), figure.to_svg())?;
        fs::write(folder.join(format!("{}.csv", figure.id)), figure.to_csv())?;
    }
    fs::write(folder.join("gallery.html"), sample::page().to_html())?;
    println!("wrote {}", folder.display());
    Ok(())
}
