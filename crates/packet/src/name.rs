//! Names: sequences of typed components (packet-format §3).
//!
//! [`Name`] is a view of a checked Name TLV-VALUE, [`NameBuf`] the owned form. Canonical order (§3.2) is the order of
//! the TLV-VALUE bytes with the shorter first, so both types compare as plain byte strings.

use crate::tlv::{self, Reader, TlvError, types};
use std::{cmp::Ordering, fmt};

/// Why some bytes are not a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The TLV structure is malformed.
    #[error("{0}")]
    Tlv(#[from] TlvError),
    /// A component type is outside 1 to 65535.
    #[error("component type {0} is outside 1 to 65535")]
    BadComponentType(u32),
    /// A digest component is not of 32 bytes.
    #[error("a digest component is not of 32 bytes")]
    BadDigestLength,
    /// The element is not a Name.
    #[error("element type {0} is not a Name")]
    NotAName(u32),
    /// The name of a Data has an implicit digest: that is computed from the packet, never written in it (§5).
    #[error("the name of a Data has an implicit digest among its components")]
    DigestInDataName,
}

/// One component of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Component<'a> {
    /// TLV-TYPE, 1 to 65535.
    pub type_number: u32,
    /// TLV-VALUE, any bytes.
    pub value: &'a [u8],
}

impl<'a> Component<'a> {
    /// A generic component (type 8).
    pub const fn generic(value: &'a [u8]) -> Self {
        Component { type_number: types::GENERIC_COMPONENT, value }
    }

    /// The value as a number, if it is a well-formed NonNegativeInteger.
    pub fn as_nni(&self) -> Option<u64> {
        tlv::read_nni(self.value).ok()
    }

    /// The segment number, if this is a segment component.
    pub fn segment(&self) -> Option<u64> {
        (self.type_number == types::SEGMENT_COMPONENT).then(|| self.as_nni()).flatten()
    }

    /// The version, if this is a version component.
    pub fn version(&self) -> Option<u64> {
        (self.type_number == types::VERSION_COMPONENT).then(|| self.as_nni()).flatten()
    }

    /// Appends the component's TLV.
    pub fn write_tlv(&self, out: &mut Vec<u8>) {
        tlv::write_tlv(out, self.type_number, self.value);
    }
}

impl Ord for Component<'_> {
    /// By type, then by length, then byte by byte (§3.2).
    fn cmp(&self, other: &Self) -> Ordering {
        (self.type_number, self.value.len(), self.value).cmp(&(other.type_number, other.value.len(), other.value))
    }
}

impl PartialOrd for Component<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A checked name, borrowed from a packet or a table.
///
/// It proves that every component is complete, has a type in 1 to 65535 and, if it is a digest, 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Name<'a> {
    value: &'a [u8],
    component_count: usize,
}

/// Types of one byte, as [`Name::read_usual`] compares them.
const NAME: u8 = types::NAME as u8;
const GENERIC_COMPONENT: u8 = types::GENERIC_COMPONENT as u8;
/// By the first byte of a component: whether that is its type, and not one of a digest, which has rules of its own.
///
/// N.B. A table, because the compiler made one test of two comparisons, which took longer for generic components.
static IS_PLAIN: [bool; 256] = {
    let mut is_plain = [true; 256];
    is_plain[0] = false;
    is_plain[types::IMPLICIT_SHA256_DIGEST as usize] = false;
    is_plain[types::PARAMETERS_SHA256_DIGEST as usize] = false;
    [is_plain[253], is_plain[254], is_plain[255]] = [false; 3];
    is_plain
};

/// The result of one pass over a name's components.
pub(crate) struct NameScan<'a> {
    pub(crate) name: Name<'a>,
    /// The last component is an implicit digest.
    pub(crate) ends_in_implicit_digest: bool,
    /// How many ParametersSha256DigestComponents there are.
    pub(crate) parameters_digests: usize,
}

impl<'a> Name<'a> {
    /// The name of zero components, `/`.
    pub const ROOT: Name<'static> = Name { value: &[], component_count: 0 };

    /// Checks a Name TLV-VALUE: components back to back. No bytes are the name `/`.
    ///
    /// # Errors
    /// If the TLVs are malformed, if a component has a type outside 1 to 65535, or if a digest has not 32 bytes.
    #[inline]
    pub fn parse_value(value: &'a [u8]) -> Result<Self, NameError> {
        Name::scan::<false>(value).map(|scan| scan.name)
    }

    /// Checks the Name TLV-VALUE of a Data: as [`Name::parse_value`], and without an implicit digest.
    #[inline]
    pub(crate) fn parse_value_of_data(value: &'a [u8]) -> Result<Self, NameError> {
        Name::scan::<true>(value).map(|scan| scan.name)
    }

    /// Checks a Name TLV-VALUE and notes the facts that an Interest needs about its components, in the same pass.
    pub(crate) fn scan<const OF_DATA: bool>(value: &'a [u8]) -> Result<NameScan<'a>, NameError> {
        let mut scan = NameScan {
            name: Name { value, component_count: 0 },
            ends_in_implicit_digest: false,
            parameters_digests: 0,
        };
        let mut rest = value;
        while !rest.is_empty() {
            scan.name.component_count += 1;
            // Nearly every component is generic, with a length of one byte.
            if let [8, length @ 0..=252, after @ ..] = rest {
                rest = after.get(usize::from(*length)..).ok_or(TlvError::Truncated)?;
                continue;
            }
            let element = tlv::read_element(rest)?;
            check_component(&element)?;
            rest = &rest[element.wire.len()..];
            match element.type_number {
                types::IMPLICIT_SHA256_DIGEST if OF_DATA => return Err(NameError::DigestInDataName),
                types::IMPLICIT_SHA256_DIGEST => scan.ends_in_implicit_digest = rest.is_empty(),
                types::PARAMETERS_SHA256_DIGEST => scan.parameters_digests += 1,
                _ => {}
            }
        }
        Ok(scan)
    }

    /// Reads a Name element in its usual form from the start of `input`, and calls `note` with each number of
    /// components and the bytes of the name after them. Returns the name and what follows it. `None` if the form is
    /// another one, or no name at all: then [`Name::scan`] decides.
    ///
    /// The usual form: one byte for the Name's length, one for the type and one for the length of each component, and
    /// no digest among these.
    ///
    /// N.B. No test asks whether a component's length is above 252, where a longer number begins: that exceeds a name
    /// whose own length takes one byte.
    #[inline(always)]
    pub(crate) fn read_usual(input: &'a [u8], mut note: impl FnMut(usize, usize)) -> Option<(Self, &'a [u8])> {
        let [NAME, length @ 0..=252, rest @ ..] = input else { return None };
        let (value, after) = rest.split_at_checked(usize::from(*length))?;
        let (mut left, mut component_count) = (value, 0);
        while let [type_number, length, rest @ ..] = left {
            if *type_number != GENERIC_COMPONENT && !IS_PLAIN[usize::from(*type_number)] {
                return None;
            }
            left = rest.get(usize::from(*length)..)?;
            component_count += 1;
            note(component_count, left.len());
        }
        left.is_empty().then_some((Name { value, component_count }, after))
    }

    /// Calls `note` as [`Name::read_usual`] does, for a name of any form.
    #[cold]
    pub(crate) fn note_components(&self, mut note: impl FnMut(usize, usize)) {
        let mut components = self.components();
        for count in 1..=self.component_count {
            components.next();
            note(count, components.reader.remaining().len());
        }
    }

    /// Checks a whole Name element (type 7) that fills `wire`.
    ///
    /// # Errors
    /// [`NameError::NotAName`] if `wire` is not exactly one element of type 7; also those of [`Name::parse_value`].
    pub fn parse_tlv(wire: &'a [u8]) -> Result<Self, NameError> {
        let element = tlv::read_element(wire)?;
        if element.type_number != types::NAME || element.wire.len() != wire.len() {
            return Err(NameError::NotAName(element.type_number));
        }
        Name::parse_value(element.value)
    }

    /// The Name TLV-VALUE: component TLVs back to back.
    pub const fn value(&self) -> &'a [u8] {
        self.value
    }

    /// Number of components.
    pub const fn len(&self) -> usize {
        self.component_count
    }

    /// True for `/`.
    pub const fn is_empty(&self) -> bool {
        self.component_count == 0
    }

    /// The components in order.
    pub fn components(&self) -> Components<'a> {
        Components { reader: Reader::new(self.value), left: self.component_count }
    }

    /// Component number `index`, from 0. Cost: a scan up to it.
    pub fn get(&self, index: usize) -> Option<Component<'a>> {
        self.components().nth(index)
    }

    /// The last component.
    pub fn last(&self) -> Option<Component<'a>> {
        self.components().last()
    }

    /// The first `count` components, or the whole name if it has fewer.
    pub fn prefix(&self, count: usize) -> Name<'a> {
        if count >= self.component_count {
            return *self;
        }
        let mut components = self.components();
        components.by_ref().take(count).for_each(drop);
        Name { value: &self.value[..components.reader.offset()], component_count: count }
    }

    /// The name without its last component; `/` stays `/`.
    pub fn parent(&self) -> Name<'a> {
        self.prefix(self.component_count.saturating_sub(1))
    }

    /// True if `other` begins with all components of `self`; a name is a prefix of itself.
    pub fn is_prefix_of(&self, other: &Name<'_>) -> bool {
        // Component TLVs are self-delimiting: equal leading bytes of whole components mean equal components.
        other.value.starts_with(self.value)
    }

    /// Copies the name.
    pub fn to_buf(&self) -> NameBuf {
        NameBuf { value: self.value.to_vec(), component_count: self.component_count }
    }

    /// Bytes of the whole Name element.
    pub const fn tlv_size(&self) -> usize {
        tlv::element_wire_size(types::NAME, self.value.len())
    }

    /// Appends the whole Name element.
    pub fn write_tlv(&self, out: &mut Vec<u8>) {
        tlv::write_tlv(out, types::NAME, self.value);
    }
}

fn check_component(element: &tlv::Element<'_>) -> Result<(), NameError> {
    match element.type_number {
        types::IMPLICIT_SHA256_DIGEST | types::PARAMETERS_SHA256_DIGEST if element.value.len() != 32 => {
            Err(NameError::BadDigestLength)
        }
        1..=0xFFFF => Ok(()),
        other => Err(NameError::BadComponentType(other)),
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Iterator over the components of a name.
#[derive(Clone, Debug)]
pub struct Components<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Iterator for Components<'a> {
    type Item = Component<'a>;

    #[inline]
    fn next(&mut self) -> Option<Component<'a>> {
        // A checked name never yields an error; `ok` avoids a panic if it did.
        let element = self.reader.next_element().ok().flatten()?;
        self.left = self.left.saturating_sub(1);
        Some(Component { type_number: element.type_number, value: element.value })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Components<'_> {}

/// An owned name, also the builder for names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NameBuf {
    value: Vec<u8>,
    component_count: usize,
}

impl NameBuf {
    /// The name `/`.
    pub const fn new() -> Self {
        NameBuf { value: Vec::new(), component_count: 0 }
    }

    /// Borrows it as a view.
    pub fn as_name(&self) -> Name<'_> {
        Name { value: &self.value, component_count: self.component_count }
    }

    /// The Name TLV-VALUE.
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// Number of components.
    pub const fn len(&self) -> usize {
        self.component_count
    }

    /// True for `/`.
    pub const fn is_empty(&self) -> bool {
        self.component_count == 0
    }

    /// Appends a component.
    ///
    /// # Panics
    /// If the type is outside 1 to 65535 or a digest has not 32 bytes. Only a mistake of the program can cause this,
    /// never a packet.
    pub fn push(&mut self, component: Component<'_>) -> &mut Self {
        let start = self.value.len();
        component.write_tlv(&mut self.value);
        let wire = &self.value[start..];
        let checked = tlv::read_element(wire).map_err(NameError::from).and_then(|e| check_component(&e));
        assert_eq!(checked, Ok(()), "invalid component pushed");
        self.component_count += 1;
        self
    }

    /// Appends a generic component.
    pub fn push_generic(&mut self, value: &[u8]) -> &mut Self {
        self.push(Component::generic(value))
    }

    /// Appends a component whose value is a number.
    pub fn push_typed_nni(&mut self, type_number: u32, number: u64) -> &mut Self {
        let size = tlv::nni_size(number);
        self.push(Component { type_number, value: &number.to_be_bytes()[8 - size..] })
    }

    /// Appends a segment number.
    pub fn push_segment(&mut self, segment: u64) -> &mut Self {
        self.push_typed_nni(types::SEGMENT_COMPONENT, segment)
    }

    /// Appends a version.
    pub fn push_version(&mut self, version: u64) -> &mut Self {
        self.push_typed_nni(types::VERSION_COMPONENT, version)
    }

    /// Appends all components of `name`.
    pub fn append(&mut self, name: Name<'_>) -> &mut Self {
        self.value.extend_from_slice(name.value);
        self.component_count += name.component_count;
        self
    }

    /// Removes the last component; `/` stays `/`.
    pub fn pop(&mut self) {
        let parent = self.as_name().parent();
        let (bytes, count) = (parent.value.len(), parent.component_count);
        self.value.truncate(bytes);
        self.component_count = count;
    }

    /// A copy with one more component, for chains.
    pub fn join(&self, component: Component<'_>) -> NameBuf {
        let mut name = self.clone();
        name.push(component);
        name
    }
}

impl fmt::Debug for NameBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_name())
    }
}

impl From<Name<'_>> for NameBuf {
    fn from(name: Name<'_>) -> Self {
        name.to_buf()
    }
}

impl From<&NameBuf> for NameBuf {
    fn from(name: &NameBuf) -> Self {
        name.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(uri: &str) -> NameBuf {
        uri.parse().unwrap()
    }

    #[test]
    fn prefixes_are_by_component_not_by_byte() {
        let long = name("/a/bc/d");
        assert!(name("/a").as_name().is_prefix_of(&long.as_name()));
        assert!(name("/a/bc/d").as_name().is_prefix_of(&long.as_name()));
        assert!(!name("/a/b").as_name().is_prefix_of(&long.as_name()));
        assert_eq!(long.as_name().prefix(2), name("/a/bc").as_name());
        assert_eq!(long.as_name().prefix(9), long.as_name());
        assert_eq!(long.as_name().prefix(0), Name::ROOT);
    }

    #[test]
    fn pop_and_parent_stop_at_the_root() {
        let mut n = name("/a/b");
        n.pop();
        assert_eq!(n, name("/a"));
        n.pop();
        n.pop();
        assert_eq!(n, NameBuf::new());
    }
}
