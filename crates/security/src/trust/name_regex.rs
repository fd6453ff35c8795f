//! NDN regular expressions: does a name match, and which part of the name does each group hold?
//!
//! Source: ndn-cxx `utils-ndn-regex.rst`. `<…>` is one component. `<>` matches any component. Otherwise the text
//! between the brackets is an ordinary regular expression that must match the whole component, as URIs write it.
//! `[<a><b>]` and `[^<a><b>]` are sets of components; `* + ? {n} {n,} {,m} {n,m}` repeat; `(…)` groups. An expression
//! without `^` is tried at the first component, then after as many components as possible. One without `$` may be
//! followed by anything.
//!
//! Cost: a match takes one pass over the components, with all alternatives at once: components × steps of the program.
//! There is no backtracking that a name could make expensive. Limits: [`MAX_STEPS`], [`MAX_GROUPS`], [`MAX_DEPTH`],
//! [`MAX_EXPRESSION_BYTES`].

mod parser;
mod template;

pub use template::NameTemplate;

use namewire_packet::{Component, Name, NameBuf, tlv::types};
use parser::{Node, Parser};

/// Longest expression in bytes.
pub const MAX_EXPRESSION_BYTES: usize = 4096;
/// Most steps of a program. Repeats with a number are written out, and each member of a set counts.
pub const MAX_STEPS: usize = 1024;
/// Most groups in an expression.
pub const MAX_GROUPS: usize = 16;
/// Deepest nesting of groups.
pub const MAX_DEPTH: usize = 16;
/// Most memory of one component's expression in bytes.
const MAX_COMPONENT_PROGRAM_BYTES: usize = 1 << 18;

/// Why an expression or a template is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameRegexError {
    /// The byte here is not what the syntax expects.
    #[error("{expected} expected at byte {at}")]
    Syntax {
        /// What was expected.
        expected: &'static str,
        /// The byte position.
        at: usize,
    },
    /// The expression between angle brackets is wrong.
    #[error("the expression of a component is wrong: {0}")]
    Component(String),
    /// A limit of this module was exceeded.
    #[error("an expression may have at most {limit} {what}")]
    TooLarge {
        /// The thing that is too large or too many.
        what: &'static str,
        /// Its limit.
        limit: usize,
    },
    /// A template names a group that does not exist.
    #[error("there is no group {0}")]
    NoSuchGroup(usize),
}

/// A checked expression.
#[derive(Clone, Debug)]
pub struct NameRegex {
    text: String,
    steps: Vec<Step>,
    groups: Vec<Group>,
}

impl PartialEq for NameRegex {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// What a group number means.
#[derive(Clone, Copy, Debug)]
enum Group {
    /// A run of components.
    Components,
    /// A group of the expression inside angle brackets: the step, and the number of the group there.
    InComponent { step: usize, group: usize },
}

/// One step of the program.
#[derive(Clone, Debug)]
enum Step {
    /// Takes a component. `slot` records its place if the test has groups of its own.
    Take {
        test: ComponentTest,
        slot: Option<usize>,
    },
    /// Continues at both steps, preferring the first.
    Split(usize, usize),
    Jump(usize),
    /// Records the position.
    Note(usize),
    Match,
}

/// The test that a component must pass.
#[derive(Clone, Debug)]
enum ComponentTest {
    Any,
    /// A generic component of these bytes.
    Exactly(Vec<u8>),
    Expression(regex_lite::Regex),
    Set {
        tests: Vec<ComponentTest>,
        is_negated: bool,
    },
}

impl ComponentTest {
    /// The test for the text between angle brackets.
    fn parse(text: &str) -> Result<Self, NameRegexError> {
        if text.is_empty() {
            return Ok(ComponentTest::Any);
        }
        if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_~".contains(&byte)) {
            return Ok(ComponentTest::Exactly(text.as_bytes().to_vec()));
        }
        let expression = regex_lite::RegexBuilder::new(&format!("^(?:{text})$"))
            .size_limit(MAX_COMPONENT_PROGRAM_BYTES)
            .build()
            .map_err(|error| NameRegexError::Component(error.to_string()))?;
        Ok(ComponentTest::Expression(expression))
    }

    fn accepts(&self, component: Component<'_>) -> bool {
        match self {
            ComponentTest::Any => true,
            ComponentTest::Exactly(value) => {
                component.type_number == types::GENERIC_COMPONENT && component.value == value
            }
            ComponentTest::Expression(expression) => expression.is_match(&component.to_string()),
            ComponentTest::Set { tests, is_negated } => tests.iter().any(|test| test.accepts(component)) != *is_negated,
        }
    }

    /// Groups inside the brackets.
    fn groups(&self) -> usize {
        match self {
            ComponentTest::Expression(expression) => expression.captures_len() - 1,
            _ => 0,
        }
    }
}

/// Where the groups of a match are.
#[derive(Clone, Debug)]
pub struct NameCaptures<'r, 'n> {
    regex: &'r NameRegex,
    name: Name<'n>,
    slots: Vec<u32>,
}

/// A slot that was never recorded.
const UNSET: u32 = u32::MAX;

impl NameRegex {
    /// Reads an expression.
    ///
    /// # Errors
    /// See [`NameRegexError`].
    pub fn parse(text: &str) -> Result<Self, NameRegexError> {
        if text.len() > MAX_EXPRESSION_BYTES {
            return Err(NameRegexError::TooLarge { what: "bytes", limit: MAX_EXPRESSION_BYTES });
        }
        let (from_start, rest) = text.strip_prefix('^').map_or((false, text), |rest| (true, rest));
        let (to_end, body) = rest.strip_suffix('$').map_or((false, rest), |body| (true, body));
        let nodes = Parser::new(body, text.len() - rest.len()).parse()?;
        let mut program = Program::default();
        if !from_start {
            // The expression itself, or as many components as possible and then the expression.
            program.push(Step::Split(4, 1))?;
            program.push(Step::Split(2, 4))?;
            program.push(Step::Take { test: ComponentTest::Any, slot: None })?;
            program.push(Step::Jump(1))?;
        }
        program.list(&nodes)?;
        if !to_end {
            let rest = Node::Take { test: ComponentTest::Any, first_group: 0 };
            program.repeat(&rest, 0, None)?;
        }
        program.push(Step::Match)?;
        Ok(NameRegex { text: text.to_owned(), steps: program.steps, groups: program.groups })
    }

    /// The expression as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The number of groups, without the whole.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// True if the name matches.
    pub fn is_match(&self, name: Name<'_>) -> bool {
        self.captures(name).is_some()
    }

    /// The groups, if the name matches.
    pub fn captures<'n>(&self, name: Name<'n>) -> Option<NameCaptures<'_, 'n>> {
        let mut threads = Threads::new(self);
        threads.add(0, 0, vec![UNSET; 2 * self.groups.len()]);
        for (position, component) in name.components().enumerate() {
            let current = threads.take();
            if current.is_empty() {
                return None;
            }
            for (step, mut slots) in current {
                let Step::Take { test, slot } = &self.steps[step] else { continue };
                if test.accepts(component) {
                    if let Some(slot) = slot {
                        (0..test.groups()).for_each(|group| slots[2 * (slot + group)] = position as u32);
                    }
                    threads.add(step + 1, position as u32 + 1, slots);
                }
            }
        }
        // Only a match after the last component counts, because the whole name must match.
        let (_, slots) = threads.take().into_iter().find(|(step, _)| matches!(self.steps[*step], Step::Match))?;
        Some(NameCaptures { regex: self, name, slots })
    }
}

impl NameCaptures<'_, '_> {
    fn groups(&self) -> usize {
        self.regex.groups()
    }

    /// Appends the components of a group; group 0 is the whole name. A group that took no part appends nothing.
    fn append(&self, group: usize, to: &mut NameBuf) {
        let Some(index) = group.checked_sub(1) else {
            to.append(self.name);
            return;
        };
        let (from, end) = (self.slots[2 * index], self.slots[2 * index + 1]);
        match self.regex.groups[index] {
            Group::Components if from != UNSET && end != UNSET => {
                let parts = self.name.components().skip(from as usize).take(end.saturating_sub(from) as usize);
                for component in parts {
                    to.push(component);
                }
            }
            Group::InComponent { step, group } if from != UNSET => {
                let Step::Take { test: ComponentTest::Expression(expression), .. } = &self.regex.steps[step] else {
                    return;
                };
                let Some(component) = self.name.get(from as usize) else { return };
                let text = component.to_string();
                let part = expression.captures(&text).and_then(|captures| captures.get(group));
                if let Some(part) = part {
                    to.push_generic(part.as_str().as_bytes());
                }
            }
            _ => {}
        }
    }
}

/// The live alternatives at one position, best first.
struct Threads<'r> {
    regex: &'r NameRegex,
    alive: Vec<(usize, Vec<u32>)>,
    /// Steps that a better alternative has reached at this position.
    reached: Vec<bool>,
}

impl<'r> Threads<'r> {
    fn new(regex: &'r NameRegex) -> Self {
        Threads { regex, alive: Vec::new(), reached: vec![false; regex.steps.len()] }
    }

    fn take(&mut self) -> Vec<(usize, Vec<u32>)> {
        self.reached.fill(false);
        std::mem::take(&mut self.alive)
    }

    /// Follows the steps that take no component.
    fn add(&mut self, step: usize, position: u32, slots: Vec<u32>) {
        let mut waiting = vec![(step, slots)];
        while let Some((step, mut slots)) = waiting.pop() {
            if std::mem::replace(&mut self.reached[step], true) {
                continue;
            }
            match &self.regex.steps[step] {
                Step::Split(first, second) => {
                    waiting.push((*second, slots.clone()));
                    waiting.push((*first, slots));
                }
                Step::Jump(to) => waiting.push((*to, slots)),
                Step::Note(slot) => {
                    slots[*slot] = position;
                    waiting.push((step + 1, slots));
                }
                Step::Take { .. } | Step::Match => self.alive.push((step, slots)),
            }
        }
    }
}

#[derive(Default)]
struct Program {
    steps: Vec<Step>,
    /// Members of all sets.
    members: usize,
    groups: Vec<Group>,
}

impl Program {
    fn push(&mut self, step: Step) -> Result<usize, NameRegexError> {
        if let Step::Take { test: ComponentTest::Set { tests, .. }, .. } = &step {
            self.members += tests.len();
        }
        if self.steps.len() + self.members >= MAX_STEPS {
            return Err(NameRegexError::TooLarge { what: "steps", limit: MAX_STEPS });
        }
        self.steps.push(step);
        Ok(self.steps.len() - 1)
    }

    fn list(&mut self, nodes: &[Node]) -> Result<(), NameRegexError> {
        nodes.iter().try_for_each(|node| self.node(node))
    }

    fn node(&mut self, node: &Node) -> Result<(), NameRegexError> {
        match node {
            Node::Take { test, first_group } => {
                let slot = (test.groups() > 0).then_some(*first_group);
                let step = self.push(Step::Take { test: test.clone(), slot })?;
                for group in 0..test.groups() {
                    self.set_group(first_group + group, Group::InComponent { step, group: group + 1 });
                }
            }
            Node::Group { number, nodes } => {
                self.set_group(*number, Group::Components);
                self.push(Step::Note(2 * number))?;
                self.list(nodes)?;
                self.push(Step::Note(2 * number + 1))?;
            }
            Node::Repeat { node, min, max } => self.repeat(node, *min, *max)?,
        }
        Ok(())
    }

    fn repeat(&mut self, node: &Node, min: usize, max: Option<usize>) -> Result<(), NameRegexError> {
        for _ in 0..min {
            self.node(node)?;
        }
        match max {
            None => {
                let head = self.push(Step::Split(0, 0))?;
                self.node(node)?;
                self.push(Step::Jump(head))?;
                self.steps[head] = Step::Split(head + 1, self.steps.len());
            }
            Some(max) => {
                let mut heads = Vec::new();
                for _ in min..max {
                    heads.push(self.push(Step::Split(0, 0))?);
                    self.node(node)?;
                }
                let end = self.steps.len();
                heads.iter().for_each(|&head| self.steps[head] = Step::Split(head + 1, end));
            }
        }
        Ok(())
    }

    fn set_group(&mut self, number: usize, group: Group) {
        if self.groups.len() <= number {
            self.groups.resize(number + 1, Group::Components);
        }
        self.groups[number] = group;
    }
}

#[cfg(test)]
mod tests;
