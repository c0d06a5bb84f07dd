//! Report files.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::ser::{CompactFormatter, Formatter};

use super::{LoadReport, html};
use crate::error::{LoadError, LoadResult};

/// Writes the report as JSON, indented, with one line per entry of a list; replaces an existing file. Fractions keep
/// nine significant digits, and NaN and infinity become `null`. A report that is read back is written the same again.
///
/// # Errors
/// [`LoadError::Io`] with the path if the file cannot be written.
pub fn write_json(report: &impl Serialize, path: &Path) -> LoadResult<()> {
    write(path, |file| {
        to_writer(report, &mut *file)?;
        file.write_all(b"\n")
    })
}

/// Writes the report as an HTML page; replaces an existing file.
///
/// # Errors
/// [`LoadError::Io`] with the path if the file cannot be written.
pub fn write_html(report: &LoadReport, path: &Path) -> LoadResult<()> {
    write_page(&html::page(report), path)
}

/// Writes a page; replaces an existing file.
pub(crate) fn write_page(page: &str, path: &Path) -> LoadResult<()> {
    write(path, |file| file.write_all(page.as_bytes()))
}

/// Checks that a report can be written to a path, without changing an existing file: better now than after the run.
///
/// # Errors
/// [`LoadError::Io`] with the path if the file cannot be written.
pub fn check_writable(path: &Path) -> LoadResult<()> {
    let is_new = !path.exists();
    let opened = File::options().append(true).create(true).open(path);
    opened.map_err(|error| LoadError::Io {
        path: path.to_owned(),
        error,
    })?;
    if is_new {
        // An empty file could be taken for the report of a failed run.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

fn write(path: &Path, content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> LoadResult<()> {
    let attempt = || {
        let mut file = BufWriter::new(File::create(path)?);
        content(&mut file)?;
        // Dropping the writer would flush as well, but lose the error.
        file.flush()
    };
    attempt().map_err(|error| LoadError::Io {
        path: path.to_owned(),
        error,
    })
}

/// Returns the JSON of the report, as in the file.
pub(super) fn to_json(report: &LoadReport) -> String {
    let mut json = Vec::new();
    // Neither the report nor memory can fail; with an empty text, the rest of the page would still be useful.
    match to_writer(report, &mut json) {
        Ok(()) => String::from_utf8(json).unwrap_or_default(),
        Err(_) => String::new(),
    }
}

fn to_writer(report: &impl Serialize, to: impl Write) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(to, ReportJsonFormatter::default());
    report.serialize(&mut serializer).map_err(io::Error::from)
}

/// Reads a number or `null`, as JSON writes NaN and infinity.
pub(super) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

/// Indents objects, but keeps an entry of a list on one line: a run has thousands of seconds, and they read and compare
/// well as a table.
#[derive(Default)]
struct ReportJsonFormatter {
    depth: usize,
    lists: usize,
    has_value: bool,
}

impl ReportJsonFormatter {
    fn open(&mut self) {
        self.depth += 1;
        self.has_value = false;
    }

    fn close(&mut self, to: &mut (impl Write + ?Sized)) -> io::Result<()> {
        self.depth -= 1;
        if self.has_value && self.lists == 0 {
            self.new_line(to)
        } else {
            Ok(())
        }
    }

    fn new_line(&self, to: &mut (impl Write + ?Sized)) -> io::Result<()> {
        write!(to, "\n{:width$}", "", width = 2 * self.depth)
    }
}

impl Formatter for ReportJsonFormatter {
    fn write_f64<W: ?Sized + Write>(&mut self, to: &mut W, value: f64) -> io::Result<()> {
        // No measurement has more digits than this; with more, the parser of serde_json may be off in the last one.
        let rounded = format!("{value:.8e}").parse().unwrap_or(value);
        CompactFormatter.write_f64(to, rounded)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.open();
        self.lists += 1;
        to.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.lists -= 1;
        self.close(to)?;
        to.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if !first {
            to.write_all(b",")?;
        }
        if self.lists == 1 {
            self.new_line(to)
        } else {
            Ok(())
        }
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.open();
        to.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.close(to)?;
        to.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if !first {
            to.write_all(b",")?;
        }
        match (self.lists, first) {
            (0, _) => self.new_line(to),
            (_, true) => Ok(()),
            (_, false) => to.write_all(b" "),
        }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}
