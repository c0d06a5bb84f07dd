//! Licences of the code that the program is built from.

use std::io::{self, Write};

use flate2::read::GzDecoder;

/// Name, version and licence of each third-party crate, one per line.
const CRATES: &str = include_str!("../licenses/crates.tsv");
/// Licence texts, each below the crates that it applies to, compressed.
const TEXTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/licenses.gz"));

/// Prints the licence of the program, the third-party crates with their licences, and all licence texts.
pub(crate) fn print(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "Fieldline is licensed under Apache-2.0. It contains:\n")?;
    for line in CRATES.lines() {
        let mut fields = line.split('\t');
        let mut next = || fields.next().unwrap_or_default();
        writeln!(out, "{:36} {:12} {}", next(), next(), next())?;
    }
    writeln!(out)?;
    io::copy(&mut GzDecoder::new(TEXTS), out)?;
    Ok(())
}
