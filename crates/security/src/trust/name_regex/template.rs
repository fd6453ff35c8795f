//! Templates: a name made of groups and fixed components, for example `\1<KEY>\2`.
//!
//! Source: ndn-cxx `security-validator-config.rst`, `k-expand` and `p-expand`.

use super::{MAX_EXPRESSION_BYTES, NameCaptures, NameRegex, NameRegexError};
use namewire_packet::NameBuf;

/// A checked template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameTemplate {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Group(usize),
    Component(Vec<u8>),
}

impl NameTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// If a part is neither `\<number>` nor `<component>`.
    pub fn parse(text: &str) -> Result<Self, NameRegexError> {
        if text.len() > MAX_EXPRESSION_BYTES {
            return Err(NameRegexError::TooLarge { what: "bytes", limit: MAX_EXPRESSION_BYTES });
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let at = text.len() - rest.len();
            let expected = |expected| NameRegexError::Syntax { expected, at };
            if let Some(after) = rest.strip_prefix('\\') {
                let digits = after.bytes().take_while(u8::is_ascii_digit).count();
                let number = after[..digits].parse().map_err(|_| expected("the number of a group"))?;
                parts.push(Part::Group(number));
                rest = &after[digits..];
            } else if let Some((component, after)) = rest.strip_prefix('<').and_then(|inner| inner.split_once('>')) {
                parts.push(Part::Component(component.as_bytes().to_vec()));
                rest = after;
            } else {
                return Err(expected("\\ or <component>"));
            }
        }
        Ok(NameTemplate { parts })
    }

    /// Checks that every group of this template exists in `regex`.
    ///
    /// # Errors
    /// The first group that does not exist.
    pub fn check(&self, regex: &NameRegex) -> Result<(), NameRegexError> {
        let missing = self.parts.iter().find_map(|part| match part {
            Part::Group(number) if *number > regex.groups() => Some(*number),
            _ => None,
        });
        missing.map_or(Ok(()), |number| Err(NameRegexError::NoSuchGroup(number)))
    }

    /// The name that the template makes of a match. Groups that do not exist add nothing.
    pub fn expand(&self, captures: &NameCaptures<'_, '_>) -> NameBuf {
        let mut name = NameBuf::new();
        for part in &self.parts {
            match part {
                Part::Group(number) if *number <= captures.groups() => captures.append(*number, &mut name),
                Part::Group(_) => {}
                Part::Component(value) => {
                    name.push_generic(value);
                }
            }
        }
        name
    }
}
