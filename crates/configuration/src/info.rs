//! The INFO format of Boost's property tree, in which `nfd.conf` is written.
//!
//! ```text
//!   key value        ; a comment
//!   "key with space" "value with \"escapes\"" {
//!     nested value
//!   }
//!   #include "other.conf"
//! ```
//!
//! Source: the documentation of Boost.PropertyTree, "INFO Parser". Only white space or `;` ends a word, so `key{` is a
//! key of four characters: a brace needs white space around it. After a backslash, a quoted value continues in the next
//! line. The entries of an included file replace the directive.
//!
//! Limits: nesting of [`MAX_DEPTH`]; [`MAX_ENTRIES`] entries in all; included files at most [`MAX_INCLUDE_DEPTH`] deep
//! and [`MAX_INCLUDES`] in all.

use std::{iter::Peekable, str::Chars};

/// Most braces open at once.
pub const MAX_DEPTH: usize = 32;
/// Most entries.
pub const MAX_ENTRIES: usize = 65_536;
/// Most files open at once.
pub const MAX_INCLUDE_DEPTH: usize = 8;
/// Most files read in all. A file that includes another twice, eight deep, asks for 256.
pub const MAX_INCLUDES: usize = 64;

/// A key with its value and its nested entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// First word of the entry.
    pub key: String,
    /// Second word; empty if there is none.
    pub value: String,
    /// Its line in the file, from 1.
    pub line: usize,
    /// The entries in its braces.
    pub children: Vec<Entry>,
}

impl Entry {
    /// The first child of this key.
    pub fn child(&self, key: &str) -> Option<&Entry> {
        self.children.iter().find(|child| child.key == key)
    }
}

/// An error in a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InfoError {
    /// The line, from 1, in the text itself or in an included file.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// Reads a text; `include` gives the text of an included file.
///
/// # Errors
/// The first error.
pub fn parse(text: &str, include: &mut Include<'_>) -> Result<Vec<Entry>, InfoError> {
    let mut reader = Reader { open: vec![Vec::new()], may_nest: false, pending: Pending::Key, entries: 0, includes: 0 };
    reader.read_file(text, include, 0)?;
    if reader.open.len() > 1 {
        return Err(error(text.lines().count().max(1), "a brace is not closed"));
    }
    Ok(reader.open.pop().unwrap_or_default())
}

/// Returns the text of the file that an `#include` names, or the reason why there is none.
pub type Include<'a> = dyn FnMut(&str) -> Result<String, String> + 'a;

fn error(line: usize, message: impl Into<String>) -> InfoError {
    InfoError { line, message: message.into() }
}

/// The meaning of the next word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pending {
    Key,
    Value,
    /// The rest of a value that continues after a backslash.
    Continuation,
}

struct Reader {
    /// Entries of each open brace, the outermost first; never empty.
    open: Vec<Vec<Entry>>,
    /// The last entry may get a brace.
    may_nest: bool,
    pending: Pending,
    entries: usize,
    includes: usize,
}

impl Reader {
    fn read_file(&mut self, text: &str, include: &mut Include<'_>, depth: usize) -> Result<(), InfoError> {
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            match line.trim_start().strip_prefix('#') {
                Some(directive) if self.pending != Pending::Continuation => {
                    self.read_directive(directive, number, include, depth)?;
                }
                _ => self.read_line(line, number)?,
            }
        }
        if self.pending == Pending::Continuation {
            return Err(error(text.lines().count(), "the file ends where a value was to go on"));
        }
        Ok(())
    }

    fn read_directive(
        &mut self,
        directive: &str,
        line: usize,
        include: &mut Include<'_>,
        depth: usize,
    ) -> Result<(), InfoError> {
        let Some(rest) = directive.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t', '"'])) else {
            return Err(error(line, "unknown directive; known is #include \"FILE\""));
        };
        let mut characters = rest.chars().peekable();
        skip_space(&mut characters);
        if characters.peek() != Some(&'"') {
            return Err(error(line, "#include needs the file's name in quotes"));
        }
        let name = read_quoted(&mut characters).map_err(|message| error(line, message))?;
        skip_space(&mut characters);
        if characters.peek().is_some_and(|next| *next != ';') {
            return Err(error(line, "only a comment may follow the included file's name"));
        }
        self.includes += 1;
        if depth >= MAX_INCLUDE_DEPTH || self.includes > MAX_INCLUDES {
            let limits = format!("at most {MAX_INCLUDE_DEPTH} deep and {MAX_INCLUDES} in all");
            return Err(error(line, format!("too many files include each other ({limits})")));
        }
        let text = include(&name).map_err(|message| error(line, format!("cannot include \"{name}\": {message}")))?;
        self.read_file(&text, include, depth + 1)
            .map_err(|inner| error(line, format!("in \"{name}\", line {}: {}", inner.line, inner.message)))
    }

    fn read_line(&mut self, text: &str, line: usize) -> Result<(), InfoError> {
        let mut characters = text.chars().peekable();
        loop {
            skip_space(&mut characters);
            let next = match characters.peek() {
                None | Some(';') => break,
                Some(next) => *next,
            };
            match (self.pending, next) {
                (Pending::Continuation, '"') => self.read_value(&mut characters, line)?,
                (Pending::Continuation, _) => return Err(error(line, "a value was to go on here, in quotes")),
                (_, '{') => {
                    characters.next();
                    self.open_brace(line)?;
                }
                (_, '}') => {
                    characters.next();
                    self.close_brace(line)?;
                }
                (Pending::Key, _) => {
                    let key = read_word(&mut characters).map_err(|message| error(line, message))?;
                    self.add(key, line)?;
                }
                (Pending::Value, _) => self.read_value(&mut characters, line)?,
            }
        }
        if self.pending == Pending::Value {
            self.pending = Pending::Key; // a key without value
        }
        Ok(())
    }

    fn add(&mut self, key: String, line: usize) -> Result<(), InfoError> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(error(line, format!("more than {MAX_ENTRIES} entries")));
        }
        if let Some(entries) = self.open.last_mut() {
            entries.push(Entry { key, line, ..Entry::default() });
        }
        (self.pending, self.may_nest) = (Pending::Value, true);
        Ok(())
    }

    fn read_value(&mut self, characters: &mut Peekable<Chars<'_>>, line: usize) -> Result<(), InfoError> {
        let is_quoted = characters.peek() == Some(&'"');
        let value = read_word(characters).map_err(|message| error(line, message))?;
        if let Some(entry) = self.open.last_mut().and_then(|entries| entries.last_mut()) {
            entry.value.push_str(&value);
        }
        self.pending = Pending::Key;
        skip_space(characters);
        if is_quoted && characters.peek() == Some(&'\\') {
            characters.next();
            skip_space(characters);
            if characters.peek().is_some_and(|next| *next != ';') {
                return Err(error(line, "nothing may follow the backslash that continues a value"));
            }
            // A comment after it is skipped with the rest of the line.
            characters.by_ref().for_each(drop);
            self.pending = Pending::Continuation;
        }
        Ok(())
    }

    fn open_brace(&mut self, line: usize) -> Result<(), InfoError> {
        if !self.may_nest {
            return Err(error(line, "a brace opens, but no key comes before it"));
        }
        if self.open.len() > MAX_DEPTH {
            return Err(error(line, format!("more than {MAX_DEPTH} braces are open")));
        }
        self.open.push(Vec::new());
        (self.pending, self.may_nest) = (Pending::Key, false);
        Ok(())
    }

    fn close_brace(&mut self, line: usize) -> Result<(), InfoError> {
        if self.open.len() < 2 {
            return Err(error(line, "a brace closes that was not opened"));
        }
        let children = self.open.pop().unwrap_or_default();
        if let Some(entry) = self.open.last_mut().and_then(|entries| entries.last_mut()) {
            entry.children = children;
        }
        (self.pending, self.may_nest) = (Pending::Key, false);
        Ok(())
    }
}

fn skip_space(characters: &mut Peekable<Chars<'_>>) {
    while characters.next_if(|c| c.is_ascii_whitespace()).is_some() {}
}

/// A quoted string, or the text up to the next white space or `;`.
fn read_word(characters: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    if characters.peek() == Some(&'"') {
        return read_quoted(characters);
    }
    let mut word = String::new();
    while let Some(c) = characters.next_if(|c| !c.is_ascii_whitespace() && *c != ';') {
        word.push(if c == '\\' { escaped(characters)? } else { c });
    }
    Ok(word)
}

fn read_quoted(characters: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    characters.next();
    let mut word = String::new();
    loop {
        match characters.next() {
            None => return Err("a quotation mark is not closed in its line".to_owned()),
            Some('"') => return Ok(word),
            Some('\\') => word.push(escaped(characters)?),
            Some(c) => word.push(c),
        }
    }
}

fn escaped(characters: &mut Peekable<Chars<'_>>) -> Result<char, String> {
    Ok(match characters.next() {
        Some('0') => '\0',
        Some('a') => '\x07',
        Some('b') => '\x08',
        Some('f') => '\x0c',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('v') => '\x0b',
        Some(c @ ('"' | '\'' | '\\')) => c,
        Some(c) => return Err(format!("unknown escape \\{c}")),
        None => return Err("a backslash is the last character of the line".to_owned()),
    })
}

#[cfg(test)]
mod tests;
