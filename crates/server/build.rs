//! Compresses the texts of licences, of which `fieldline licenses` alone makes use.

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

const TEXTS: &str = "licenses/texts.txt";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={TEXTS}");
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(&fs::read(TEXTS)?)?;
    let file = PathBuf::from(env::var("OUT_DIR")?).join("licenses.gz");
    fs::write(file, packer.finish()?)?;
    Ok(())
}
