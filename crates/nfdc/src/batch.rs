//! `nfdc -f FILE`: one command per line.
//!
//! Words are separated by blanks. After a backslash, a quote, a blank or a backslash has no special meaning, and `\n`
//! is a line break. Single and double quotes keep blanks. A line that ends in a backslash continues in the next one.
//! Empty lines and lines that begin with `#` are ignored. Empty words cannot be written.
//!
//! Source: manual page nfdc(1). Limit: [`BATCH_BYTES_MAX`].

use std::{
    fs::File,
    io::{self, Read},
};

/// Largest batch, in bytes.
pub(crate) const BATCH_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Words of one command, and where it stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Number of its (last) line, from 1.
    pub(crate) number: usize,
    /// `None`: a backslash or quote makes no sense.
    pub(crate) words: Option<Vec<String>>,
}

/// Reads a batch from a file, or from standard input if `path` is `-`.
pub(crate) fn read(path: &str) -> io::Result<String> {
    let mut text = String::new();
    let length = match path {
        "-" => io::stdin().lock().take(BATCH_BYTES_MAX + 1).read_to_string(&mut text)?,
        _ => File::open(path)?.take(BATCH_BYTES_MAX + 1).read_to_string(&mut text)?,
    };
    if length as u64 > BATCH_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {BATCH_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// The commands of a batch.
pub(crate) fn lines(text: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut pending = String::new();
    let mut rest = text.lines().enumerate().peekable();
    while let Some((index, line)) = rest.next() {
        pending.push_str(line);
        let backslashes = pending.len() - pending.trim_end_matches('\\').len();
        if backslashes % 2 == 1 {
            pending.pop();
            if rest.peek().is_some() {
                continue;
            }
        }
        let words = words(&std::mem::take(&mut pending));
        let is_empty = words.as_ref().is_some_and(|words| words.first().is_none_or(|first| first.starts_with('#')));
        if !is_empty {
            found.push(Line { number: index + 1, words });
        }
    }
    found
}

/// `None` if a backslash stands before what needs none, as in NFD's nfdc.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut is_quoted = false;
    let mut letters = line.chars();
    while let Some(c) = letters.next() {
        match c {
            '\\' => match letters.next()? {
                'n' => word.push('\n'),
                special @ ('\\' | '"' | '\'' | ' ' | '\t') => word.push(special),
                _ => return None,
            },
            // Either quote ends what either began.
            '"' | '\'' => is_quoted = !is_quoted,
            ' ' | '\t' if !is_quoted => words.push(std::mem::take(&mut word)),
            other => word.push(other),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(text: &str) -> Vec<(usize, Option<String>)> {
        lines(text).into_iter().map(|line| (line.number, line.words.map(|words| words.join("|")))).collect()
    }

    #[test]
    fn lines_words_quotes_and_comments() {
        let text =
            "\n# a comment\n  face list\nroute\tadd  '/a b' \\\n  300\nstrategy show /a\\ b\n   \n\"face\" 'list'\n";
        assert_eq!(
            found(text),
            [
                (3, Some("face|list".to_owned())),
                (5, Some("route|add|/a b|300".to_owned())),
                (6, Some("strategy|show|/a b".to_owned())),
                (8, Some("face|list".to_owned())),
            ]
        );
    }

    #[test]
    fn backslashes() {
        assert_eq!(found("a \\x"), [(1, None)]);
        assert_eq!(found("a\\\\b"), [(1, Some("a\\b".to_owned()))]);
        assert_eq!(found("last line \\"), [(1, Some("last|line".to_owned()))]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "[ a#'\"\\\\\\n\\t]{0,60}") {
            for line in lines(&text) {
                prop_assert!(line.number >= 1);
                let is_clean = |words: Vec<String>| !words.is_empty() && words.iter().all(|word| !word.is_empty());
                prop_assert!(line.words.is_none_or(is_clean));
            }
        }

        #[test]
        fn quoted_words_come_through(words_in in prop::collection::vec("[a-z #]{1,8}", 1..5)) {
            prop_assume!(!words_in[0].starts_with('#'));
            let line: Vec<String> = words_in.iter().map(|word| format!("\"{word}\"")).collect();
            prop_assert_eq!(words(&line.join(" ")), Some(words_in));
        }
    }
}
