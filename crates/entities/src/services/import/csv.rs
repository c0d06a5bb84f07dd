//! Rows of CSV texts: RFC 4180 with any delimiter, and any kind of line end.

/// A row, with the line that it begins in, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CsvRow {
    pub(crate) line: usize,
    pub(crate) cells: Vec<String>,
}

/// Why a text is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CsvLimitError {
    /// It has more rows than may be read at once.
    Rows,
    /// The row that begins in this line has more cells than any mapping.
    Cells(usize),
}

/// Rows of one text at most.
pub(super) const MAX_ROWS: usize = 200_000;
/// Cells of one row at most.
pub(super) const MAX_CELLS: usize = 1_000;

/// Hands over the rows of a text one by one: all of them at once would be many times its size. Empty lines are left out; a
/// quote that is never closed reaches to the end.
pub(crate) fn each_row(
    text: &str,
    delimiter: char,
    mut take: impl FnMut(CsvRow),
) -> Result<(), CsvLimitError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut count = 0;
    let mut chars = text.chars().peekable();
    let (mut line, mut begun) = (1, 1);
    let (mut cells, mut cell) = (Vec::new(), String::new());
    // Inside of quotes; whether the cell had some, so that an empty one is told from an empty line.
    let (mut quoted, mut had_quotes) = (false, false);
    while let Some(char) = chars.next() {
        let ends_line = match char {
            '\r' if chars.peek() == Some(&'\n') => {
                if quoted {
                    cell.push(char);
                }
                continue;
            }
            '\n' | '\r' => true,
            _ => false,
        };
        if ends_line {
            line += 1;
        }
        if quoted {
            match char {
                '"' if chars.peek() == Some(&'"') => {
                    chars.next();
                    cell.push('"');
                }
                '"' => quoted = false,
                other => cell.push(other),
            }
        } else if ends_line {
            if !cells.is_empty() || !cell.is_empty() || had_quotes {
                count += 1;
                if count > MAX_ROWS {
                    return Err(CsvLimitError::Rows);
                }
                cells.push(std::mem::take(&mut cell));
                take(CsvRow {
                    line: begun,
                    cells: std::mem::take(&mut cells),
                });
            }
            (begun, had_quotes) = (line, false);
        } else if char == delimiter {
            if cells.len() >= MAX_CELLS {
                return Err(CsvLimitError::Cells(begun));
            }
            cells.push(std::mem::take(&mut cell));
            had_quotes = false;
        } else if char == '"' && cell.is_empty() && !had_quotes {
            (quoted, had_quotes) = (true, true);
        } else {
            cell.push(char);
        }
    }
    if !cells.is_empty() || !cell.is_empty() || had_quotes {
        if count >= MAX_ROWS {
            return Err(CsvLimitError::Rows);
        }
        cells.push(cell);
        take(CsvRow { line: begun, cells });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(text: &str, delimiter: char) -> Result<Vec<CsvRow>, CsvLimitError> {
        let mut rows = Vec::new();
        each_row(text, delimiter, |row| rows.push(row))?;
        Ok(rows)
    }

    fn cells(text: &str, delimiter: char) -> Vec<(usize, Vec<String>)> {
        rows(text, delimiter)
            .unwrap()
            .into_iter()
            .map(|row| (row.line, row.cells))
            .collect()
    }

    fn row(line: usize, cells: &[&str]) -> (usize, Vec<String>) {
        (line, cells.iter().map(|cell| (*cell).to_owned()).collect())
    }

    #[test]
    fn quotes_delimiters_and_line_ends_are_read_as_everywhere() {
        assert_eq!(
            cells("a,b,\r\n\r\n\"x,\"\"y\"\"\nz\",2\nlast", ','),
            [
                row(1, &["a", "b", ""]),
                row(3, &["x,\"y\"\nz", "2"]),
                row(5, &["last"])
            ]
        );
        assert_eq!(
            cells("a;b\rc;\"\"\r", ';'),
            [row(1, &["a", "b"]), row(2, &["c", ""])]
        );
        assert_eq!(cells("\u{feff}a\tb", '\t'), [row(1, &["a", "b"])]);
        assert_eq!(cells("\"\"\n", ','), [row(1, &[""])]);
        assert_eq!(cells("5\" pipe,x", ','), [row(1, &["5\" pipe", "x"])]);
        assert_eq!(cells("\"never closed,\n1", ','), [row(1, &["never closed,\n1"])]);
        assert_eq!(cells("", ','), []);
    }

    #[test]
    fn what_is_too_large_is_not_read() {
        assert_eq!(rows(&"a\n".repeat(MAX_ROWS + 1), ','), Err(CsvLimitError::Rows));
        assert_eq!(rows(&"a\n".repeat(MAX_ROWS), ',').unwrap().len(), MAX_ROWS);
        let wide = format!("a\n{}", ",".repeat(MAX_CELLS + 1));
        assert_eq!(rows(&wide, ','), Err(CsvLimitError::Cells(2)));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(table in prop::collection::vec(prop::collection::vec(".{0,8}", 1..4), 0..6)) {
            let text: String = table
                .iter()
                .map(|cells| {
                    let quoted: Vec<String> =
                        cells.iter().map(|cell| format!("\"{}\"", cell.replace('"', "\"\""))).collect();
                    quoted.join(",") + "\n"
                })
                .collect();
            let read: Vec<Vec<String>> = rows(&text, ',').unwrap().into_iter().map(|row| row.cells).collect();
            prop_assert_eq!(read, table);
        }
    }
}
