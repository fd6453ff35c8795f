//! The binary model of a schema: its TLV elements, and what must be there.
//!
//! Source: python-ndn, *LVS binary format*, version 0x00011000. The file is the value of the model, without a type and
//! length of its own. The elements of a value come in the order of the specification. A reader skips elements that it
//! does not know if their type is even, and refuses the others.
//!
//! Limits: [`MODEL_BYTES_MAX`], [`NODES_MAX`]; all lists are as long as the bytes allow.

use super::SchemaError;
use namewire_packet::{
    Component, Name,
    tlv::{Element, Reader, read_nni},
};
use std::collections::HashMap;

/// The only version of the format.
pub const VERSION: u64 = 0x0001_1000;
/// Longest compiled schema, in bytes.
pub const MODEL_BYTES_MAX: usize = 1 << 20;
/// Most nodes of a schema.
pub const NODES_MAX: usize = 1 << 14;
/// Most components of a name that a schema describes.
pub const DEPTH_MAX: usize = 128;

mod element {
    pub(super) const COMPONENT_VALUE: u32 = 0x21;
    pub(super) const PATTERN_TAG: u32 = 0x23;
    pub(super) const NODE_ID: u32 = 0x25;
    pub(super) const USER_FN_ID: u32 = 0x27;
    pub(super) const IDENTIFIER: u32 = 0x29;
    pub(super) const USER_FN_CALL: u32 = 0x31;
    pub(super) const FN_ARGS: u32 = 0x33;
    pub(super) const CONS_OPTION: u32 = 0x41;
    pub(super) const CONSTRAINT: u32 = 0x43;
    pub(super) const VALUE_EDGE: u32 = 0x51;
    pub(super) const PATTERN_EDGE: u32 = 0x53;
    pub(super) const KEY_NODE_ID: u32 = 0x55;
    pub(super) const PARENT_ID: u32 = 0x57;
    pub(super) const VERSION: u32 = 0x61;
    pub(super) const NODE: u32 = 0x63;
    pub(super) const TAG_SYMBOL: u32 = 0x67;
    pub(super) const NAMED_PATTERN_NUM: u32 = 0x69;
}

/// A schema as its file describes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Model {
    /// The node at which every name begins.
    pub(super) start: usize,
    /// Patterns with a tag up to this one keep their value; those above match any value each time.
    pub(super) named_patterns: u64,
    pub(super) nodes: Vec<Node>,
    /// Names of patterns, by tag.
    pub(super) symbols: HashMap<u64, String>,
    /// Names of the functions that constraints call.
    pub(super) functions: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) parent: Option<usize>,
    /// Names of the rules that end here.
    pub(super) rules: Vec<String>,
    pub(super) values: Vec<ValueEdge>,
    pub(super) patterns: Vec<PatternEdge>,
    /// Nodes whose keys may sign what ends here, in order and each once.
    pub(super) signers: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ValueEdge {
    pub(super) to: usize,
    pub(super) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct PatternEdge {
    pub(super) to: usize,
    pub(super) tag: u64,
    /// Each of them must hold.
    pub(super) constraints: Vec<Vec<Choice>>,
}

/// One option of a constraint.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Choice {
    Value(Value),
    /// The value of another pattern.
    Tag(u64),
    Call(Call),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    /// Index in [`Model::functions`].
    pub(super) function: usize,
    pub(super) arguments: Vec<Argument>,
}

/// The value of a pattern; without one, a constant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Argument {
    pub(super) tag: Option<u64>,
    pub(super) value: Option<Value>,
}

/// A name component.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value {
    type_number: u32,
    bytes: Box<[u8]>,
}

impl Value {
    pub(super) fn component(&self) -> Component<'_> {
        Component { type_number: self.type_number, value: &self.bytes }
    }
}

type Read<T> = Result<T, SchemaError>;

fn malformed<T>(place: &str, problem: impl Into<String>) -> Read<T> {
    Err(SchemaError::Malformed { place: place.to_owned(), problem: problem.into() })
}

/// Reads a model. The numbers of nodes in it are not checked yet.
pub(super) fn read(bytes: &[u8]) -> Read<Model> {
    if bytes.len() > MODEL_BYTES_MAX {
        return Err(SchemaError::TooLarge { what: "bytes", limit: MODEL_BYTES_MAX });
    }
    let mut fields = Fields::new(bytes, "the schema")?;
    let version = fields.required_number(element::VERSION, "version")?;
    if version != VERSION {
        return Err(SchemaError::Version(version));
    }
    let start = fields.required_number(element::NODE_ID, "start node")?;
    let named_patterns = fields.required_number(element::NAMED_PATTERN_NUM, "number of named patterns")?;
    let (mut nodes, mut functions) = (Vec::new(), Vec::new());
    while let Some(value) = fields.take(element::NODE)? {
        if nodes.len() == NODES_MAX {
            return Err(SchemaError::TooLarge { what: "nodes", limit: NODES_MAX });
        }
        nodes.push(node(value, nodes.len(), &mut functions)?);
    }
    let mut symbols = HashMap::new();
    while let Some(value) = fields.take(element::TAG_SYMBOL)? {
        let mut fields = Fields::new(value, "the name of a pattern")?;
        let tag = fields.required_number(element::PATTERN_TAG, "tag")?;
        let Some(name) = fields.text(element::IDENTIFIER)? else { return fields.missing("identifier") };
        fields.end()?;
        symbols.insert(tag, name);
    }
    fields.end()?;
    Ok(Model { start: index(start), named_patterns, nodes, symbols, functions })
}

fn node(value: &[u8], number: usize, functions: &mut Vec<String>) -> Read<Node> {
    let place = format!("node {number}");
    let mut fields = Fields::new(value, &place)?;
    if fields.required_number(element::NODE_ID, "number")? != number as u64 {
        return malformed(&place, "has the number of another node");
    }
    let parent = fields.number(element::PARENT_ID)?.map(index);
    let (mut rules, mut values, mut patterns, mut signers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    while let Some(rule) = fields.text(element::IDENTIFIER)? {
        rules.push(rule);
    }
    while let Some(value) = fields.take(element::VALUE_EDGE)? {
        let mut fields = Fields::new(value, &place)?;
        let to = index(fields.required_number(element::NODE_ID, "destination of an edge")?);
        let Some(value) = fields.component()? else { return fields.missing("value of an edge") };
        fields.end()?;
        values.push(ValueEdge { to, value });
    }
    while let Some(value) = fields.take(element::PATTERN_EDGE)? {
        patterns.push(pattern_edge(value, &place, functions)?);
    }
    while let Some(signer) = fields.number(element::KEY_NODE_ID)? {
        signers.push(index(signer));
    }
    fields.end()?;
    signers.sort_unstable();
    signers.dedup();
    Ok(Node { parent, rules, values, patterns, signers })
}

fn pattern_edge(value: &[u8], place: &str, functions: &mut Vec<String>) -> Read<PatternEdge> {
    let mut fields = Fields::new(value, place)?;
    let to = index(fields.required_number(element::NODE_ID, "destination of an edge")?);
    let tag = fields.required_number(element::PATTERN_TAG, "tag of an edge")?;
    let mut constraints = Vec::new();
    while let Some(value) = fields.take(element::CONSTRAINT)? {
        let (mut options, mut choices) = (Fields::new(value, place)?, Vec::new());
        while let Some(value) = options.take(element::CONS_OPTION)? {
            choices.push(choice(value, place, functions)?);
        }
        options.end()?;
        constraints.push(choices);
    }
    fields.end()?;
    Ok(PatternEdge { to, tag, constraints })
}

fn choice(value: &[u8], place: &str, functions: &mut Vec<String>) -> Read<Choice> {
    let mut fields = Fields::new(value, place)?;
    let (value, tag) = (fields.component()?, fields.number(element::PATTERN_TAG)?);
    let call = fields.take(element::USER_FN_CALL)?.map(|value| call(value, place, functions)).transpose()?;
    fields.end()?;
    match (value, tag, call) {
        (Some(value), None, None) => Ok(Choice::Value(value)),
        (None, Some(tag), None) => Ok(Choice::Tag(tag)),
        (None, None, Some(call)) => Ok(Choice::Call(call)),
        _ => malformed(place, "has an option that is not one of a value, a pattern and a call"),
    }
}

fn call(value: &[u8], place: &str, functions: &mut Vec<String>) -> Read<Call> {
    let mut fields = Fields::new(value, place)?;
    let name = fields.text(element::USER_FN_ID)?.filter(|name| !name.is_empty());
    let Some(name) = name else { return fields.missing("name of a function") };
    let mut arguments = Vec::new();
    while let Some(value) = fields.take(element::FN_ARGS)? {
        let mut fields = Fields::new(value, place)?;
        let (value, tag) = (fields.component()?, fields.number(element::PATTERN_TAG)?);
        fields.end()?;
        if value.is_none() && tag.is_none() {
            return malformed(place, "calls a function with an argument that is empty");
        }
        arguments.push(Argument { tag, value });
    }
    fields.end()?;
    let known = functions.iter().position(|one| *one == name);
    let function = known.unwrap_or_else(|| {
        functions.push(name);
        functions.len() - 1
    });
    Ok(Call { function, arguments })
}

/// The number of a node. Numbers that no node can have become one that no node has.
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The elements of a value, in order.
struct Fields<'a> {
    reader: Reader<'a>,
    /// The next element that must not be skipped.
    next: Option<Element<'a>>,
    place: &'a str,
}

impl<'a> Fields<'a> {
    fn new(value: &'a [u8], place: &'a str) -> Read<Self> {
        let mut fields = Fields { reader: Reader::new(value), next: None, place };
        fields.advance()?;
        Ok(fields)
    }

    fn advance(&mut self) -> Read<()> {
        loop {
            self.next = self.reader.next_element()?;
            let may_skip = |element: &Element<'_>| element.type_number > 31 && element.type_number.is_multiple_of(2);
            if !self.next.as_ref().is_some_and(may_skip) {
                return Ok(());
            }
        }
    }

    /// The value of the next element, if it has this type.
    fn take(&mut self, type_number: u32) -> Read<Option<&'a [u8]>> {
        match self.next {
            Some(element) if element.type_number == type_number => {
                self.advance()?;
                Ok(Some(element.value))
            }
            _ => Ok(None),
        }
    }

    fn number(&mut self, type_number: u32) -> Read<Option<u64>> {
        Ok(self.take(type_number)?.map(read_nni).transpose()?)
    }

    fn required_number(&mut self, type_number: u32, what: &str) -> Read<u64> {
        match self.number(type_number)? {
            Some(number) => Ok(number),
            None => self.missing(what),
        }
    }

    fn text(&mut self, type_number: u32) -> Read<Option<String>> {
        let Some(value) = self.take(type_number)? else { return Ok(None) };
        match String::from_utf8(value.to_vec()) {
            Ok(text) => Ok(Some(text)),
            Err(_) => malformed(self.place, "has a text that is not UTF-8"),
        }
    }

    fn component(&mut self) -> Read<Option<Value>> {
        let Some(value) = self.take(element::COMPONENT_VALUE)? else { return Ok(None) };
        match Name::parse_value(value).map(|name| (name.len(), name.get(0))) {
            Ok((1, Some(component))) => {
                Ok(Some(Value { type_number: component.type_number, bytes: component.value.into() }))
            }
            _ => malformed(self.place, "has a value that is not one name component"),
        }
    }

    fn missing<T>(&self, what: &str) -> Read<T> {
        malformed(self.place, format!("is without the {what}"))
    }

    fn end(&self) -> Read<()> {
        match self.next {
            None => Ok(()),
            Some(element) => malformed(self.place, format!("has an element of type {:#x} there", element.type_number)),
        }
    }
}
