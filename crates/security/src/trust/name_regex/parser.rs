//! The parser: from the text of an expression to its tree.

use super::{ComponentTest, MAX_DEPTH, MAX_GROUPS, MAX_STEPS, NameRegexError};

/// A part of an expression. Groups are numbered from 0 in the order in which they open, including those inside angle
/// brackets.
pub(super) enum Node {
    Take { test: ComponentTest, first_group: usize },
    Group { number: usize, nodes: Vec<Node> },
    Repeat { node: Box<Node>, min: usize, max: Option<usize> },
}

pub(super) struct Parser<'t> {
    text: &'t str,
    at: usize,
    /// Bytes of the expression before `text`.
    offset: usize,
    groups: usize,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, offset: usize) -> Self {
        Parser { text, at: 0, offset, groups: 0 }
    }

    pub(super) fn parse(mut self) -> Result<Vec<Node>, NameRegexError> {
        let nodes = self.list(0)?;
        if self.at < self.text.len() { Err(self.expected("< or [ or (")) } else { Ok(nodes) }
    }

    fn expected(&self, expected: &'static str) -> NameRegexError {
        NameRegexError::Syntax { expected, at: self.offset + self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, NameRegexError> {
        if depth > MAX_DEPTH {
            return Err(NameRegexError::TooLarge { what: "levels of groups", limit: MAX_DEPTH });
        }
        let mut nodes = Vec::new();
        loop {
            let node = match self.peek() {
                Some(b'<') => self.component()?,
                Some(b'[') => self.set()?,
                Some(b'(') => {
                    self.at += 1;
                    let number = self.new_groups(1)?;
                    let inner = self.list(depth + 1)?;
                    if self.peek() != Some(b')') {
                        return Err(self.expected(")"));
                    }
                    self.at += 1;
                    Node::Group { number, nodes: inner }
                }
                _ => return Ok(nodes),
            };
            nodes.push(self.repetition(node)?);
        }
    }

    fn new_groups(&mut self, count: usize) -> Result<usize, NameRegexError> {
        let first = self.groups;
        self.groups += count;
        if self.groups > MAX_GROUPS {
            return Err(NameRegexError::TooLarge { what: "groups", limit: MAX_GROUPS });
        }
        Ok(first)
    }

    /// The text between angle brackets, which may be nested.
    fn bracketed(&mut self) -> Result<&'t str, NameRegexError> {
        let from = self.at + 1;
        let mut open = 0;
        for (index, byte) in self.text.as_bytes()[self.at..].iter().enumerate() {
            match byte {
                b'<' => open += 1,
                b'>' => open -= 1,
                _ => {}
            }
            if open == 0 {
                let inner = &self.text[from..self.at + index];
                self.at += index + 1;
                return Ok(inner);
            }
        }
        self.at = self.text.len();
        Err(self.expected(">"))
    }

    fn component(&mut self) -> Result<Node, NameRegexError> {
        let test = ComponentTest::parse(self.bracketed()?)?;
        let first_group = self.new_groups(test.groups())?;
        Ok(Node::Take { test, first_group })
    }

    fn set(&mut self) -> Result<Node, NameRegexError> {
        self.at += 1;
        let is_negated = self.peek() == Some(b'^');
        self.at += usize::from(is_negated);
        let mut tests = Vec::new();
        while self.peek() == Some(b'<') {
            tests.push(ComponentTest::parse(self.bracketed()?)?);
        }
        if self.peek() != Some(b']') {
            return Err(self.expected("< or ]"));
        }
        self.at += 1;
        Ok(Node::Take { test: ComponentTest::Set { tests, is_negated }, first_group: 0 })
    }

    fn repetition(&mut self, node: Node) -> Result<Node, NameRegexError> {
        let (min, max) = match self.peek() {
            Some(b'*') => (0, None),
            Some(b'+') => (1, None),
            Some(b'?') => (0, Some(1)),
            Some(b'{') => {
                self.at += 1;
                let range = self.range()?;
                if self.peek() != Some(b'}') {
                    return Err(self.expected("}"));
                }
                range
            }
            _ => return Ok(node),
        };
        self.at += 1;
        Ok(Node::Repeat { node: Box::new(node), min, max })
    }

    /// `n`, `n,`, `,m` or `n,m`.
    fn range(&mut self) -> Result<(usize, Option<usize>), NameRegexError> {
        let min = self.number()?;
        if self.peek() != Some(b',') {
            let exactly = min.ok_or_else(|| self.expected("a number"))?;
            return Ok((exactly, Some(exactly)));
        }
        self.at += 1;
        let max = self.number()?;
        match (min, max) {
            (None, None) => Err(self.expected("a number")),
            (Some(min), Some(max)) if min > max => Err(self.expected("a larger number")),
            (min, max) => Ok((min.unwrap_or(0), max)),
        }
    }

    fn number(&mut self) -> Result<Option<usize>, NameRegexError> {
        let digits = self.text[self.at..].bytes().take_while(u8::is_ascii_digit).count();
        let text = &self.text[self.at..self.at + digits];
        self.at += digits;
        if digits == 0 {
            return Ok(None);
        }
        let number = text.parse().ok().filter(|&number| number <= MAX_STEPS);
        number.map(Some).ok_or(NameRegexError::TooLarge { what: "repeats", limit: MAX_STEPS })
    }
}
