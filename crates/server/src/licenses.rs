//! The licences of what the program is made of.

use std::io::{self, Write};

/// Name, version and licence of each crate of others, a line each.
const CRATES: &str = include_str!("../licenses/crates.tsv");
/// Their texts, each below the crates that it is of.
const TEXTS: &str = include_str!("../licenses/texts.txt");

/// Prints the licence of the program, the crates of others with theirs, and all texts that go with them.
pub(crate) fn print(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "Fieldline is licensed under Apache-2.0. It contains:\n")?;
    for line in CRATES.lines() {
        let mut fields = line.split('\t');
        let mut next = || fields.next().unwrap_or_default();
        writeln!(out, "{:36} {:12} {}", next(), next(), next())?;
    }
    write!(out, "\n{TEXTS}")
}
