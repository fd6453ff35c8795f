//! Printing results: aligned text for people, JSON for programs.

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// How results are printed.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// As JSON, otherwise as text.
    pub json: bool,
}

impl Output {
    /// Prints `value` as one JSON document, or else the text that `human` makes.
    ///
    /// # Errors
    /// Those of [`write_out`].
    pub fn print(self, value: &impl Serialize, human: impl FnOnce() -> String) -> io::Result<()> {
        if self.json {
            let mut text = serde_json::to_string_pretty(value)?;
            text.push('\n');
            write_out(text.as_bytes())
        } else {
            write_out(human().as_bytes())
        }
    }

    /// Prints `value` as JSON in one line, or else a line of text: for results that go on coming.
    ///
    /// # Errors
    /// Those of [`write_out`].
    pub fn print_line(self, value: &impl Serialize, human: impl FnOnce() -> String) -> io::Result<()> {
        let mut text = if self.json { serde_json::to_string(value)? } else { human() };
        text.push('\n');
        write_out(text.as_bytes())
    }
}

impl Output {
    /// A progress bar on standard error, hidden unless that is a terminal. `total` is in units, 0 if it is unknown.
    pub fn progress_bar(self, is_quiet: bool, total: u64, unit: &str) -> ProgressBar {
        if is_quiet || self.json || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let known = format!("{{bar:30}} {{percent:>3}} %  {{pos}} {unit}  {{per_sec}}  {{eta}} left");
        let unknown = format!("{{spinner}} {{pos}} {unit}  {{per_sec}}");
        let (bar, style) = match total {
            0 => (ProgressBar::no_length(), unknown),
            _ => (ProgressBar::new(total), known),
        };
        bar.with_style(ProgressStyle::with_template(&style).unwrap_or_else(|_| ProgressStyle::default_bar()))
    }
}

/// Writes to standard output. A reader that has seen enough (`| head`) is no error.
///
/// # Errors
/// Any other error of standard output.
pub fn write_out(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        result => result,
    }
}

/// Rows of cells as aligned text, two spaces between columns; the first row is the heading.
/// A table without rows below its heading prints `empty` instead.
pub fn table(rows: &[Vec<String>], empty: &str) -> String {
    if rows.len() <= 1 {
        return format!("{empty}\n");
    }
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line += &format!("{cell:<width$}  ");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// A setting as people write it.
pub fn on_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

/// Label and value per line, values aligned.
pub fn fields(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    rows.iter().map(|(label, value)| format!("{label:<width$}  {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_lines_end_clean() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let text =
            table(&[row(["ID", "REMOTE", ""]), row(["1", "internal://", ""]), row(["256", "fd://7", "x"])], "none");
        assert_eq!(text, "ID   REMOTE\n1    internal://\n256  fd://7       x\n");
        assert_eq!(table(&[row(["A", "B", "C"])], "none"), "none\n");
        assert_eq!(fields(&[("a", "1".into()), ("bcd", "2".into())]), "a    1\nbcd  2\n");
    }
}
