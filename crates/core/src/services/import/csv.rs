//! Rows of CSV texts: RFC 4180 with any delimiter, and any kind of line end.

/// A row, with the line that it begins in, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) line: usize,
    pub(super) cells: Vec<String>,
}

/// The rows of a text. Empty lines are left out; a quote that is never closed reaches to the end.
pub(super) fn rows(text: &str, delimiter: char) -> Vec<Row> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rows = Vec::new();
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
                cells.push(std::mem::take(&mut cell));
                rows.push(Row {
                    line: begun,
                    cells: std::mem::take(&mut cells),
                });
            }
            (begun, had_quotes) = (line, false);
        } else if char == delimiter {
            cells.push(std::mem::take(&mut cell));
            had_quotes = false;
        } else if char == '"' && cell.is_empty() && !had_quotes {
            (quoted, had_quotes) = (true, true);
        } else {
            cell.push(char);
        }
    }
    if !cells.is_empty() || !cell.is_empty() || had_quotes {
        cells.push(cell);
        rows.push(Row { line: begun, cells });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cells(text: &str, delimiter: char) -> Vec<(usize, Vec<String>)> {
        rows(text, delimiter)
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
            let read: Vec<Vec<String>> = rows(&text, ',').into_iter().map(|row| row.cells).collect();
            prop_assert_eq!(read, table);
        }
    }
}
