//! A reader of CSV (RFC 4180).

const QUOTE: char = '"';

#[derive(Debug, PartialEq, Eq)]
pub(super) struct CsvRow {
    /// The line that the row starts at; the first line is 1.
    pub(super) line: usize,
    /// The cells, without spaces around them.
    pub(super) cells: Vec<String>,
}

/// The rows that have a non-empty cell.
#[derive(Debug)]
pub(super) struct CsvRows<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> CsvRows<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let (at, line) = (0, 1);
        Self { text, at, line }
    }

    /// Reads a cell and its separator. Returns whether the cell is the last one of its row.
    fn read_cell(&mut self) -> Result<(String, bool), String> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let mut cell = String::new();
        let mut end = 0;
        if rest.starts_with(QUOTE) {
            loop {
                let part = &rest[end + 1..];
                let close = part.find(QUOTE).ok_or("a quote is not closed")?;
                cell.push_str(&part[..close]);
                end += close + 2;
                if !rest[end..].starts_with(QUOTE) {
                    break;
                }
                cell.push(QUOTE);
            }
        }
        let separator = rest[end..].find([',', '\n']);
        let separator = separator.map_or(rest.len(), |it| end + it);
        let plain = rest[end..separator].trim();
        if end > 0 && !plain.is_empty() {
            return Err("text follows a closing quote".to_owned());
        }
        cell.push_str(plain);
        let is_last = !rest[separator..].starts_with(',');
        let next = rest.len().min(separator + 1);
        self.line += rest[..next].matches('\n').count();
        self.at += next;
        Ok((cell.trim().to_owned(), is_last))
    }
}

impl Iterator for CsvRows<'_> {
    type Item = Result<CsvRow, String>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.text.len() {
            let line = self.line;
            let mut cells = Vec::new();
            loop {
                match self.read_cell() {
                    Ok((cell, is_last)) => {
                        cells.push(cell);
                        if is_last {
                            break;
                        }
                    }
                    Err(error) => {
                        self.at = self.text.len();
                        return Some(Err(format!("line {line}: {error}")));
                    }
                }
            }
            if cells.iter().any(|it| !it.is_empty()) {
                return Some(Ok(CsvRow { line, cells }));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<(usize, Vec<String>)> {
        let rows = CsvRows::new(text).map(Result::unwrap);
        rows.map(|it| (it.line, it.cells)).collect()
    }

    fn row(line: usize, cells: &[&str]) -> (usize, Vec<String>) {
        (line, cells.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn cells_are_read_with_quotes_blank_lines_and_any_line_ends() {
        let text = "a, b ,c\r\n\r\n,,\n\"x, \"\"y\"\"\nz\",\"\",1\n2,\" q \" ,\u{e9}";
        let expected = [
            row(1, &["a", "b", "c"]),
            row(4, &["x, \"y\"\nz", "", "1"]),
            row(6, &["2", "q", "\u{e9}"]),
        ];
        assert_eq!(cells(text), expected);
        assert_eq!(cells(""), []);
        assert_eq!(cells("\n , \n"), []);
        assert_eq!(cells("a,\n"), [row(1, &["a", ""])]);
    }

    #[test]
    fn invalid_quotes_are_rejected_with_the_line() {
        for (text, error) in [
            ("a\n\"b", "line 2: a quote is not closed"),
            ("\"", "line 1: a quote is not closed"),
            ("a\n\nb,\"c\"d\n", "line 3: text follows a closing quote"),
        ] {
            let found = CsvRows::new(text).find_map(Result::err);
            assert_eq!(found.as_deref(), Some(error));
        }
    }
}
