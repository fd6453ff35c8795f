//! minASCII: how is a name written so that its bytes leave room for what a trie must know?
//!
//! Source: NameTrie18 §IV-A, Fig. 5. The NDN URI of a name has only printable bytes. The other codes mark ends of
//! pieces, component boundaries, forwarding points and branching points.
//!
//! ```text
//! 0        end of piece (EOP)                     32-126   a printable byte
//! 1        EOP, a forwarding point                127      none (edges use it, see `name_trie`)
//! 2        slash                                  +128     the same, and a branching point
//! 3        slash, a forwarding point
//! 4-31     a frequent group of characters, if the coding has such groups
//! ```
//!
//! A name is the sequence of its components. A slash follows each component but the last, and the end follows the
//! last. The slash that begins every URI is not written: it is the root's, and the same for all. The coding of a name
//! to look up has no forwarding and no branching points. It ends with [`END_OF_NAME`], which equals no code in a trie.
//!
//! Names of any bytes:
//! - Unreserved bytes in NDN URIs are letters, digits, `-`, `.`, `_` and `~`; the paper has `+` as well. Any other
//!   byte is written as `%` and two hexadecimal digits, which are three codes.
//! - A component of another type than 8 begins with the type in decimal and `=`. Since `=` is escaped in values, no
//!   generic component looks like it.
//! - A value that is empty or consists only of periods has three periods put before it.
//!
//! So different components have different codings. A name is a prefix of another, component by component, exactly if a
//! slash or the end follows its coding in the other's coding.
//!
//! Cost: the paper's names take no more room. Random bytes take 2.48 codes each (67 of 256 bytes are their own codes:
//! (67 + 3 × 189) / 256), asserted below.
//!
//! Frequent groups (the paper's future work): [`FrequentGroups`], up to 28 strings of two and more unreserved bytes,
//! one code each. A component is cut greedily, the longest group first, by itself. What follows or precedes it changes
//! nothing, so prefixes keep their codings.
//!
//! Limits: [`MAX_NAME_COMPONENTS`], [`MAX_PREFIX_BYTES`]. Only the components within them are coded, because no prefix
//! can be longer. Writers: none; buffers are the caller's.

mod frequent_groups;

use frequent_groups::Groups;
use namewire_tables::fib::MAX_PREFIX_BYTES;
use namewire_tables::name_hash::{MAX_NAME_COMPONENTS, var_number};

pub use frequent_groups::{FREQUENT_ON_THE_WEB, FrequentGroups, MAX_GROUPS};

/// End of piece.
pub const EOP: u8 = 0;
/// Component boundary.
pub const SLASH: u8 = 2;
/// Added to [`EOP`] or [`SLASH`]: a prefix in the FIB ends before it.
pub const FORWARDING_POINT: u8 = 1;
/// The code of the first frequent group; the last is 31.
pub const FIRST_GROUP: u8 = 4;
/// Added to a code after which edges begin.
pub const BRANCHING_POINT: u8 = 128;
/// What follows the coding of a whole name; equal to no code of a trie.
pub const END_OF_NAME: u8 = 255;

/// The code of a generic component's type (NDN packet format 0.3, §2).
const GENERIC: u64 = 8;
const HEX: [u8; 16] = *b"0123456789ABCDEF";
/// Readable after [`END_OF_NAME`], so that codes can be compared eight at a time.
const PADDING_CODES: usize = 8;

/// Element `byte`: its code, or 0 if it is to be escaped.
const PLAIN: [u8; 256] = {
    let mut plain = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        if (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'-' | b'.' | b'_' | b'~' | b'+') {
            plain[byte] = byte as u8;
        }
        byte += 1;
    }
    plain
};

/// The most codes of one name: 3 for each byte of value, and for each component 3 periods, a
/// slash and a type with `=` (11; of types beyond 65535, which no name has, the rest is in the
/// bytes).
const MAX_CODES: usize = 3 * MAX_PREFIX_BYTES + (3 + 1 + 11) * MAX_NAME_COMPONENTS + 1;
const _: () = assert!(MAX_CODES < 1 << 15, "offsets in a piece take 15 bits");

namewire_packet::names! {
    /// What codes 4 to 31 stand for.
    #[derive(Default)]
    pub enum NameCodes {
        /// Nothing: the paper's.
        #[default]
        Plain = "plain",
        /// [`FREQUENT_ON_THE_WEB`].
        Web = "web",
        /// [`FREQUENT_ON_THE_WEB`] while there are few routes, then groups learned from them
        /// ([`super::name_trie::LearnedNameTrie`]).
        Learned = "learned",
    }
}

impl NameCodes {
    /// The coding that an empty table begins with.
    pub fn coding(self) -> MinAscii {
        match self {
            Self::Plain => MinAscii::plain(),
            Self::Web | Self::Learned => MinAscii::with_groups(&FrequentGroups::of_the_web()),
        }
    }
}

/// A way to code names.
#[derive(Clone, Debug, Default)]
pub struct MinAscii {
    groups: Option<Box<Groups>>,
}

/// Where a component ends, in codes and in bytes of the Name TLV-VALUE.
#[derive(Clone, Copy, Debug)]
struct ComponentEnd {
    codes: u16,
    bytes: u16,
}

/// One name within [`CodedNames`].
#[derive(Clone, Copy, Debug)]
pub struct CodedName {
    first_code: u32,
    first_end: u32,
    components: u16,
    is_whole: bool,
}

/// Codings of a batch of names; a buffer to reuse.
#[derive(Debug, Default)]
pub struct CodedNames {
    /// As long as was ever needed; what is behind `used` means nothing.
    codes: Vec<u8>,
    used: usize,
    ends: Vec<ComponentEnd>,
}

impl MinAscii {
    /// Without frequent groups: the paper's.
    pub const fn plain() -> Self {
        Self { groups: None }
    }

    /// With codes 4 to 31 for these groups.
    pub fn with_groups(groups: &FrequentGroups) -> Self {
        Self { groups: Some(Box::new(Groups::new(groups))) }
    }

    /// Appends the coding of `name_value` to `coded`.
    pub fn encode(&self, name_value: &[u8], coded: &mut CodedNames) -> CodedName {
        let first_code = coded.used;
        let name = CodedName {
            first_code: first_code as u32,
            first_end: coded.ends.len() as u32,
            components: 0,
            is_whole: false,
        };
        let most = MAX_CODES.min(3 * name_value.len() + 15 * (name_value.len() / 2).min(MAX_NAME_COMPONENTS) + 1);
        if coded.codes.len() < first_code + most + PADDING_CODES {
            coded.codes.resize((first_code + most + PADDING_CODES).next_power_of_two(), 0);
        }
        let room = &mut coded.codes[first_code..first_code + most];
        let (mut at, mut bytes, mut components) = (0, 0, 0);
        while bytes < name_value.len() && components < MAX_NAME_COMPONENTS {
            let (ty, value, end) = component_at(name_value, bytes);
            if end > MAX_PREFIX_BYTES {
                break;
            }
            if components > 0 {
                room[at] = SLASH;
                at += 1;
            }
            at = self.encode_component(ty, value, room, at);
            bytes = end;
            components += 1;
            coded.ends.push(ComponentEnd { codes: at as u16, bytes: bytes as u16 });
        }
        room[at] = END_OF_NAME;
        coded.used = first_code + at + 1;
        CodedName { components: components as u16, is_whole: bytes == name_value.len(), ..name }
    }

    /// Writes the coding of a component to `room` from `at` on; where it ends.
    #[inline]
    fn encode_component(&self, ty: u64, value: &[u8], room: &mut [u8], mut at: usize) -> usize {
        if ty != GENERIC {
            at = write_type(ty, room, at);
        }
        if value.iter().all(|&byte| byte == b'.') {
            room[at..at + 3].fill(b'.');
            at += 3;
        }
        if let Some(groups) = &self.groups {
            return encode_with_groups(groups, value, room, at);
        }
        // Nearly all values need no escape: written as if none did, and again if one does.
        let mut needs_escape = false;
        for (code, &byte) in room[at..at + value.len()].iter_mut().zip(value) {
            *code = PLAIN[byte as usize];
            needs_escape |= *code == 0;
        }
        if needs_escape {
            return value.iter().fold(at, |at, &byte| write_byte(byte, room, at));
        }
        at + value.len()
    }
}

fn encode_with_groups(groups: &Groups, value: &[u8], room: &mut [u8], mut at: usize) -> usize {
    let mut rest = value;
    while let Some((&byte, after)) = rest.split_first() {
        if let Some((group, bytes)) = groups.at_start(rest) {
            room[at] = FIRST_GROUP + group;
            at += 1;
            rest = &rest[bytes..];
        } else {
            at = write_byte(byte, room, at);
            rest = after;
        }
    }
    at
}

#[inline]
fn write_byte(byte: u8, room: &mut [u8], at: usize) -> usize {
    let plain = PLAIN[byte as usize];
    if plain != 0 {
        room[at] = plain;
        return at + 1;
    }
    room[at..at + 3].copy_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    at + 3
}

/// The type in decimal and `=`.
#[cold]
fn write_type(ty: u64, room: &mut [u8], at: usize) -> usize {
    let mut digits = [0; 20];
    let (mut first, mut rest) = (digits.len(), ty);
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let digits = &digits[first..];
    room[at..at + digits.len()].copy_from_slice(digits);
    room[at + digits.len()] = b'=';
    at + digits.len() + 1
}

/// Type and value of the component that begins at `start`, and where it ends. Bytes that are no
/// validated name make a last component of what cannot be read.
#[inline]
fn component_at(name_value: &[u8], start: usize) -> (u64, &[u8], usize) {
    if let [ty @ 0..=252, length @ 0..=252, ..] = name_value[start..] {
        let end = start + 2 + usize::from(length);
        if end <= name_value.len() {
            return (u64::from(ty), &name_value[start + 2..end], end);
        }
    }
    long_component_at(name_value, start).unwrap_or((GENERIC, &name_value[start..], name_value.len()))
}

#[cold]
fn long_component_at(name_value: &[u8], start: usize) -> Option<(u64, &[u8], usize)> {
    let (ty, after_type) = var_number(name_value, start)?;
    let (length, value_start) = var_number(name_value, after_type)?;
    let end = value_start.checked_add(usize::try_from(length).ok()?)?;
    Some((ty, name_value.get(value_start..end)?, end))
}

impl CodedNames {
    /// Forgets all names; keeps the memory.
    pub fn clear(&mut self) {
        self.used = 0;
        self.ends.clear();
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.codes.capacity() + self.ends.capacity() * size_of::<ComponentEnd>()
    }

    /// The codes of a name from its `position`th on: to [`END_OF_NAME`] and at least seven more
    /// that mean nothing.
    #[inline(always)]
    pub fn codes_from(&self, name: CodedName, position: usize) -> &[u8] {
        &self.codes[name.first_code as usize + position..]
    }

    /// The codes of a name, without its end.
    pub fn codes(&self, name: CodedName) -> &[u8] {
        let bytes = self.ends(name).last().map_or(0, |end| usize::from(end.codes));
        &self.codes[name.first_code as usize..][..bytes]
    }

    /// How many bytes of the Name TLV-VALUE the first `codes` codes stand for; a component ends there.
    #[inline]
    pub fn bytes_of(&self, name: CodedName, codes: usize) -> u16 {
        let ends = self.ends(name);
        let end = ends.iter().rev().find(|end| usize::from(end.codes) <= codes);
        end.map_or(0, |end| end.bytes)
    }

    fn ends(&self, name: CodedName) -> &[ComponentEnd] {
        &self.ends[name.first_end as usize..][..usize::from(name.components)]
    }
}

impl CodedName {
    /// Whether the name is within the limits, so that all of it was coded.
    pub fn is_whole(self) -> bool {
        self.is_whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn component(ty: u8, bytes: &[u8]) -> Vec<u8> {
        [&[ty, bytes.len() as u8], bytes].concat()
    }

    fn coding(minascii: &MinAscii, name: &[u8]) -> Vec<u8> {
        let mut coded = CodedNames::default();
        let name = minascii.encode(name, &mut coded);
        assert_eq!(coded.codes_from(name, coded.codes(name).len())[0], END_OF_NAME);
        coded.codes(name).to_vec()
    }

    #[test]
    fn names_are_written_as_uris() {
        let plain = MinAscii::plain();
        let name = [component(8, b"ndn"), component(8, b"ua"), component(8, b"cs")].concat();
        assert_eq!(coding(&plain, &name), b"ndn\x02ua\x02cs");
        assert_eq!(coding(&plain, b""), b"");
        for (bytes, expected) in [
            (component(8, b""), &b"..."[..]),
            (component(8, b"."), b"...."),
            (component(8, b"a=/%"), b"a%3D%2F%25"),
            (component(50, b"a"), b"50=a"),
            (component(8, b"50=a"), b"50%3Da"),
            (component(50, b""), b"50=..."),
            (vec![253, 255, 255, 1, 0], b"65535=%00"),
        ] {
            assert_eq!(coding(&plain, &bytes), expected);
        }
    }

    /// All components of up to two bytes and three types: no two codings are equal, and none is
    /// another one and more that begins with a slash.
    #[test]
    fn different_components_have_different_codings() {
        let groups = FrequentGroups::new([&b".."[..], b"25", b"com"]);
        for minascii in [MinAscii::plain(), MinAscii::with_groups(&groups)] {
            let mut known = HashMap::new();
            for ty in [8, 1, 80] {
                for bytes in 0..=2_u32 {
                    for number in 0..256_u32.pow(bytes) {
                        let name = component(ty, &number.to_be_bytes()[4 - bytes as usize..]);
                        let codes = coding(&minascii, &name);
                        assert!(codes.iter().all(|&code| (FIRST_GROUP..127).contains(&code)));
                        assert_eq!(known.insert(codes, name), None);
                    }
                }
            }
        }
    }

    #[test]
    fn random_bytes_take_two_and_a_half_codes() {
        let all: Vec<u8> = (0..=255).collect();
        let codes = coding(&MinAscii::plain(), &[&[8, 253, 1, 0][..], &all].concat()).len();
        assert_eq!(codes, 67 + 3 * 189);
    }

    #[test]
    fn the_longest_names_fit() {
        let mut coded = CodedNames::default();
        let deepest = component(252, b"").repeat(MAX_NAME_COMPONENTS);
        let longest = [&[8, 253, 0x22, 0x5C][..], &[0; 8796]].concat();
        let deeper = component(252, b"").repeat(MAX_NAME_COMPONENTS + 1);
        for (name, is_whole) in [(&deepest, true), (&longest, true), (&deeper, false)] {
            let coding = MinAscii::plain().encode(name, &mut coded);
            assert_eq!(coding.is_whole(), is_whole);
            let bytes = coded.bytes_of(coding, coded.codes(coding).len());
            assert_eq!(usize::from(bytes), if is_whole { name.len() } else { deepest.len() });
        }
        assert_eq!(longest.len(), MAX_PREFIX_BYTES);
    }
}
