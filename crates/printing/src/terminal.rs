//! The terminal on standard output: how wide is it, and does it show colours?

use console::{Style, Term};

/// Characters in a line; `None` if standard output is no terminal.
pub fn width() -> Option<usize> {
    let out = Term::stdout();
    let (_, columns) = out.is_term().then(|| out.size_checked()).flatten()?;
    Some(columns.into())
}

/// The text in red. It stays as it is where standard output is no terminal, or `NO_COLOR` is set.
pub fn alarming(text: &str) -> String {
    Style::new().red().apply_to(text).to_string()
}

/// The text in bold, under the same conditions.
pub fn bold(text: &str) -> String {
    Style::new().bold().apply_to(text).to_string()
}
