//! Name code: writes names in fewer bytes.
//!
//! This is a static prefix code over the bytes of Name TLV-VALUEs (Huffman 1952), in canonical form.
//! Larmore and Hirschberg's package-merge limits the lengths to [`LONGEST_CODE`] bits. The code of a byte
//! depends on its *context*, the byte before it. The code never adapts: equal names always have equal
//! codes, readers share a constant, and no sender can spoil the code for others.
//!
//! ```text
//! name       = *component NAME-END
//! component  = *byte COMPONENT-END              generic (type 8), all bytes printable ASCII
//!            / RAW type length bytes            any other: 16 bits, 16 bits, 8 bits each
//! not a code = PLAIN                             12 zero bits: the entry has the bytes themselves
//! ```
//!
//! | context | after | has in addition |
//! | --- | --- | --- |
//! | 0 | the beginning, a component | NAME-END, RAW, PLAIN |
//! | 1 | a vowel | |
//! | 2 | another letter | |
//! | 3 | any other byte | |
//!
//! If a prefix is encoded without its NAME-END, the code of the name begins with the result; and no whole
//! code is the beginning of another. To compare an entry, a look-up encodes the prefix and compares that
//! many bits. So an entry needs no length.
//!
//! The lengths below were made for three public lists in equal parts: registered domains (Tranco),
//! addresses of software (Scoop) and paths of a source tree (Node.js). For two lists that were not used, a
//! name in code takes on average: domains (UT1) 12.4 bytes instead of 23.4 as TLV, their addresses 33.1
//! instead of 56.2. Lengths made for these two lists alone would give 12.0 and 31.9.
//!
//! N.B. Other contexts were tried; these are the bytes per name of the same domains and addresses. One
//! context: 13.4 and 35.1. Three, with vowels as letters: 12.7 and 33.7. Digits as another context: 12.4
//! and 33.2. Digits and capitals: 12.4 and 32.6. One context for each byte: 12.3 and 32.4 (entropy), with a
//! table 24 times as large. Lengths up to 14 bits change nothing.
//!
//! Cost: encoding a byte takes three loads from tables of 3 KiB in all, and nothing on the heap. Decoding a
//! byte takes one load from 32 KiB; look-ups never decode. Limits: a name has no code if a TLV number of it
//! is not in the shortest form, or a type of it is above 65,535. Writers: none.

use super::entry::MAX_PREFIX_BYTES;
use super::unit::UNIT_BYTES;

const LONGEST_CODE: usize = 12;
const CONTEXTS: usize = 4;

/// Room for every code that an entry may hold (none is longer than the plain form), and for what
/// [`BitWriter`] writes beyond it.
pub(super) const CODE_BUFFER_BYTES: usize = MAX_PREFIX_BYTES + 24;

/// The first bits of a name that is not in code.
pub(super) const PLAIN_BITS: u32 = 12;

/// Code lengths of a context: of the bytes from space to `~` as hexadecimal digits, and of the other
/// symbols.
struct Lengths {
    printable: &'static [u8; 95],
    component_end: u8,
    /// The lengths of NAME-END, RAW and PLAIN.
    only_first: [u8; 3],
}

const LENGTHS: [Lengths; CONTEXTS] = [
    Lengths {
        printable: b"cccccacccccccccc988aaaaaaaccccccc9aaaa9abb9a9abaaba99c99cbccccccc56346657577655559554656798cccc",
        component_end: 12,
        only_first: [2, 12, 12],
    },
    Lengths {
        printable: b"ccccccccccccc67cc9a9bbaabbcccccccbcbcccccbccccacbcc9bcccccccccc7c5554775979744364a434666677cccc",
        component_end: 4,
        only_first: [0; 3],
    },
    Lengths {
        printable: b"cccccaccccccc56ca888aa8a7bcccccccccabacccaccccccbccabcccccccccc7c4766376548756636a544588969cccc",
        component_end: 3,
        only_first: [0; 3],
    },
    Lengths {
        printable: b"ccccccccccccc53c4445455556cccccccaaacbcbcccccbccaca8b9c8ccccccc6c6757677675975786a7668766a6cccc",
        component_end: 4,
        only_first: [0; 3],
    },
];

/// The symbols are the bytes and these.
const COMPONENT_END: usize = 0x100;
const NAME_END: usize = 0x101;
const RAW: usize = 0x102;
const PLAIN: usize = 0x103;
const SYMBOLS: usize = 0x104;

/// The code of a symbol: its bits, then their number in the lowest four bits. 0: the symbol has none.
type Code = u16;

/// By context and symbol. Bytes that are not printable have none.
static CODES: [[Code; SYMBOLS]; CONTEXTS] = {
    let mut codes = [[0; SYMBOLS]; CONTEXTS];
    let mut context = 0;
    while context < CONTEXTS {
        // Canonical, longest codes first: the first of the longest is all zeros.
        let (mut next, mut length) = (0_u32, LONGEST_CODE);
        while length > 0 {
            let mut symbol = SYMBOLS;
            while symbol > 0 {
                symbol -= 1;
                if code_length(context, symbol) == length {
                    codes[context][symbol] = (next << 4) as u16 | length as u16;
                    next += 1;
                }
            }
            assert!(next.is_multiple_of(2), "every beginning is one of some code");
            next /= 2;
            length -= 1;
        }
        assert!(next == 1, "the code is complete");
        context += 1;
    }
    codes
};

const _: () = assert!(CODES_OF_PLAIN == PLAIN_BITS as u16, "it is zeros");
const CODES_OF_PLAIN: Code = code_length(0, PLAIN) as u16;

/// By context and the next bits: the symbol and, in the lowest four bits, the length of its code.
static SYMBOLS_OF: [[u16; 1 << LONGEST_CODE]; CONTEXTS] = {
    let mut symbols = [[0; 1 << LONGEST_CODE]; CONTEXTS];
    let mut context = 0;
    while context < CONTEXTS {
        let mut symbol = 0;
        while symbol < SYMBOLS {
            let length = code_length(context, symbol);
            let mut place = 0;
            while length > 0 && place < 1 << (LONGEST_CODE - length) {
                let first = (CODES[context][symbol] as usize >> 4) << (LONGEST_CODE - length);
                symbols[context][first + place] = (symbol << 4 | length) as u16;
                place += 1;
            }
            symbol += 1;
        }
        context += 1;
    }
    symbols
};

/// The context after a byte.
static CONTEXT_AFTER: [u8; 256] = {
    let mut contexts = [3; 256];
    let mut byte = 0;
    while byte < 256 {
        if (byte as u8).is_ascii_alphabetic() {
            contexts[byte] = 2;
        }
        byte += 1;
    }
    let vowels = b"AEIOUYaeiouy";
    let mut vowel = 0;
    while vowel < vowels.len() {
        contexts[vowels[vowel] as usize] = 1;
        vowel += 1;
    }
    contexts
};

const fn code_length(context: usize, symbol: usize) -> usize {
    let lengths = &LENGTHS[context];
    let length = match symbol {
        0x20..=0x7e => match lengths.printable[symbol - 0x20] {
            digit @ b'0'..=b'9' => digit - b'0',
            digit => digit - b'a' + 10,
        },
        COMPONENT_END => lengths.component_end,
        NAME_END | RAW | PLAIN => lengths.only_first[symbol - NAME_END],
        _ => 0,
    };
    length as usize
}

/// Why a name was not encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uncoded {
    /// It has no code.
    NoCode,
    /// Its code does not fit.
    NoRoom,
}

/// Writes the code of a name to the front of `out`, and zeros up to the next whole unit; returns how many
/// units. It needs 8 bytes of room beyond the code.
///
// N.B. One loop over all bytes, with marks instead of component headers so that it needs no lengths, was
// slower: 1357 cycles per look-up of 88 bytes, 1223 here.
#[inline]
pub(super) fn encode(name_value: &[u8], out: &mut [u8]) -> Result<usize, Uncoded> {
    let (mut bits, mut rest) = (BitWriter { out, bytes: 0, pending: 0, pending_bits: 0 }, name_value);
    while !rest.is_empty() {
        let before = (bits.bytes, bits.pending, bits.pending_bits);
        let text = match *rest {
            [8, length @ 0..=252, ..] => rest.get(2..2 + usize::from(length)),
            _ => None,
        };
        if let Some(text) = text
            && bits.put_text(text)?
        {
            rest = &rest[2 + text.len()..];
        } else {
            (bits.bytes, bits.pending, bits.pending_bits) = before;
            rest = bits.put_raw(rest)?;
        }
    }
    bits.put(join(NOTHING, CODES[0][NAME_END]))?;
    Ok((bits.bytes + bits.pending_bits.div_ceil(8) as usize).div_ceil(UNIT_BYTES))
}

/// Bits in a row and their number.
type Bits = (u64, u32);
const NOTHING: Bits = (0, 0);

#[inline(always)]
fn join((bits, length): Bits, code: Code) -> Bits {
    let more = u32::from(code) % 16;
    (bits << more | u64::from(code >> 4), length + more)
}

#[inline(always)]
fn join_all((bits, length): Bits, (more_bits, more): Bits) -> Bits {
    (bits << more | more_bits, length + more)
}

struct BitWriter<'o> {
    out: &'o mut [u8],
    /// Whole bytes so far.
    bytes: usize,
    /// The bits after them, highest first, then zeros; fewer than 8.
    pending: u64,
    pending_bits: u32,
}

impl BitWriter<'_> {
    /// Adds 1 to 56 bits.
    #[inline(always)]
    fn put(&mut self, (bits, length): Bits) -> Result<(), Uncoded> {
        let filled = self.pending_bits + length;
        let pending = self.pending | bits << (64 - filled);
        let place = self.out.get_mut(self.bytes..).and_then(<[u8]>::first_chunk_mut).ok_or(Uncoded::NoRoom)?;
        *place = pending.to_be_bytes();
        self.bytes += filled as usize / 8;
        self.pending = pending << (filled & !7);
        self.pending_bits = filled % 8;
        Ok(())
    }

    /// Adds a component of text. Returns false, after adding something, if a byte has no code.
    ///
    // N.B. Four bytes at a time, because each byte's code depends on the byte before: their codes are
    // looked up side by side, and joined in pairs.
    #[inline(always)]
    fn put_text(&mut self, text: &[u8]) -> Result<bool, Uncoded> {
        let (fours, rest) = text.as_chunks::<4>();
        let (mut codes, mut coded) = (&CODES[0], true);
        for four in fours {
            let of_first = codes[usize::from(four[0])];
            let [of_second, of_third, of_fourth] =
                [0, 1, 2].map(|before| codes_after(four[before])[usize::from(four[before + 1])]);
            codes = codes_after(four[3]);
            coded &= (of_first != 0) & (of_second != 0) & (of_third != 0) & (of_fourth != 0);
            let front = join(join(NOTHING, of_first), of_second);
            let back = join(join(NOTHING, of_third), of_fourth);
            if !coded {
                return Ok(false);
            }
            self.put(join_all(front, back))?;
        }
        let mut last = NOTHING;
        for &byte in rest {
            let code = codes[usize::from(byte)];
            coded &= code != 0;
            last = join(last, code);
            codes = codes_after(byte);
        }
        self.put(join(last, codes[COMPONENT_END]))?;
        Ok(coded)
    }

    /// Adds the first component of `rest` byte by byte; returns what comes after it.
    #[cold]
    fn put_raw<'n>(&mut self, rest: &'n [u8]) -> Result<&'n [u8], Uncoded> {
        let (ty, after_type) = number(rest).ok_or(Uncoded::NoCode)?;
        let (length, value) = number(after_type).ok_or(Uncoded::NoCode)?;
        let (value, after) = value.split_at_checked(usize::from(length)).ok_or(Uncoded::NoCode)?;
        let (bits, filled) = join(NOTHING, CODES[0][RAW]);
        self.put((bits << 32 | u64::from(ty) << 16 | u64::from(length), filled + 32))?;
        value.iter().try_for_each(|&byte| self.put((byte.into(), 8)))?;
        Ok(after)
    }
}

#[inline(always)]
fn codes_after(byte: u8) -> &'static [Code; SYMBOLS] {
    &CODES[usize::from(CONTEXT_AFTER[usize::from(byte)]) % CONTEXTS]
}

/// A TLV number of at most 16 bits in its shortest form (NDN packet specification 0.3, §1.1), and what
/// comes after it.
fn number(bytes: &[u8]) -> Option<(u16, &[u8])> {
    match *bytes {
        [number @ 0..=252, ref rest @ ..] => Some((number.into(), rest)),
        [253, high, low, ref rest @ ..] => {
            let number = u16::from_be_bytes([high, low]);
            (number > 252).then_some((number, rest))
        }
        _ => None,
    }
}

fn push_number(number: u16, out: &mut Vec<u8>) {
    match number {
        0..=252 => out.push(number as u8),
        _ => {
            out.push(253);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

/// Decodes a name and appends it to `out`. `unit` gives the units of the code, first bits highest, and
/// anything after them.
pub(super) fn decode(unit: impl Fn(usize) -> u32, out: &mut Vec<u8>) {
    let mut bits = BitReader { unit, at: 0 };
    loop {
        let header = out.len();
        out.extend_from_slice(&[8, 0]);
        let mut context = 0;
        loop {
            match bits.symbol(context) {
                COMPONENT_END => break out[header + 1] = (out.len() - header - 2) as u8,
                NAME_END => return out.truncate(header),
                RAW => {
                    out.truncate(header);
                    let (ty, length) = (bits.take(16) as u16, bits.take(16) as u16);
                    push_number(ty, out);
                    push_number(length, out);
                    break out.extend((0..length).map(|_| bits.take(8) as u8));
                }
                byte => {
                    out.push(byte as u8);
                    context = usize::from(CONTEXT_AFTER[byte]);
                }
            }
        }
    }
}

struct BitReader<F> {
    unit: F,
    at: usize,
}

impl<F: Fn(usize) -> u32> BitReader<F> {
    /// The next `count` bits, at most 32.
    fn peek(&self, count: usize) -> u32 {
        let (unit, within) = (self.at / 32, self.at % 32);
        let two = u64::from((self.unit)(unit)) << 32 | u64::from((self.unit)(unit + 1));
        ((two << within) >> (64 - count)) as u32
    }

    fn take(&mut self, count: usize) -> u32 {
        let taken = self.peek(count);
        self.at += count;
        taken
    }

    fn symbol(&mut self, context: usize) -> usize {
        let symbol = SYMBOLS_OF[context][self.peek(LONGEST_CODE) as usize];
        self.at += usize::from(symbol % 16);
        usize::from(symbol >> 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn component(ty: u16, value: &[u8]) -> Vec<u8> {
        let mut tlv = Vec::new();
        push_number(ty, &mut tlv);
        push_number(value.len() as u16, &mut tlv);
        tlv.extend_from_slice(value);
        tlv
    }

    fn text(components: &[&str]) -> Vec<u8> {
        components.iter().flat_map(|text| component(8, text.as_bytes())).collect()
    }

    /// The code as bits, without the zeros after it; `None` if there is none.
    fn code_of(name_value: &[u8]) -> Option<Vec<bool>> {
        let mut out = [0xee; 20_000];
        let units = encode(name_value, &mut out).ok()?;
        let unit = |place: usize| u32::from_be_bytes(out[place * 4..][..4].try_into().unwrap());
        let mut decoded = vec![7];
        decode(unit, &mut decoded);
        assert_eq!(decoded[1..], *name_value);
        let mut bits: Vec<bool> = (0..units * 32).map(|bit| unit(bit / 32) >> (31 - bit % 32) & 1 == 1).collect();
        // NAME-END has a one in its last place.
        while bits.pop_if(|bit| !*bit).is_some() {}
        assert!(bits.len() > units * 32 - 32);
        Some(bits)
    }

    fn any_component() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            4 => "[a-z0-9.-]{0,12}".prop_map(|text| component(8, text.as_bytes())),
            2 => "[ -~]{0,300}".prop_map(|text| component(8, text.as_bytes())),
            1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| component(8, &bytes)),
            1 => (any::<u16>(), prop::collection::vec(any::<u8>(), 0..300))
                .prop_map(|(ty, bytes)| component(ty, &bytes)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// A prefix's code without its end begins the name's code, and no code begins another.
        #[test]
        fn codes_are_those_of_names(components in prop::collection::vec(any_component(), 0..8),
                                    bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let prefixes = (0..=components.len()).map(|count| components[..count].concat());
            let codes: Vec<Vec<bool>> = prefixes.map(|prefix| code_of(&prefix).expect("shortest form")).collect();
            let end = usize::from(CODES[0][NAME_END] % 16);
            for pair in codes.windows(2) {
                prop_assert!(pair[1].starts_with(&pair[0][..pair[0].len() - end]));
                prop_assert!(!pair[1].starts_with(&pair[0]));
            }
            // Any bytes: they have a code that decodes to them, or none.
            code_of(&bytes);
        }
    }

    #[test]
    fn texts_become_shorter_and_others_hardly_longer() {
        let bits = |name: &[u8]| code_of(name).map(|bits| bits.len());
        assert_eq!(bits(b""), Some(2));
        assert_eq!(bits(&component(8, b"")), Some(14));
        let host = text(&["com", "example", "www"]);
        assert!(bits(&host).unwrap() <= host.len() * 8 * 11 / 20, "{:?} bits", bits(&host));
        assert!(code_of(&component(8, b"a\x80")).is_some(), "raw");
        assert_eq!(bits(&component(54, &[1; 8])), Some(12 + 32 + 64 + 2));
        assert_eq!(bits(&component(300, &[0; 300])), Some(12 + 32 + 2400 + 2));
    }

    #[test]
    fn what_is_not_in_its_shortest_form_has_no_code() {
        for name in [&[8_u8][..], &[8, 3, 1], &[253, 0, 8, 0], &[8, 253, 0, 1, 1], &[254, 0, 1, 0, 0, 0]] {
            assert_eq!(encode(name, &mut [0; 64]), Err(Uncoded::NoCode), "{name:?}");
        }
        assert_eq!(encode(&text(&["aaaaaaaaaaaaaaaa"]), &mut [0; 16]), Err(Uncoded::NoRoom));
        assert_eq!(encode(&component(8, &[0; 20]), &mut [0; 16]), Err(Uncoded::NoRoom));
    }

    #[test]
    fn plain_is_no_code() {
        assert_eq!(CODES[0][PLAIN] >> 4, 0);
        let first_bits = |name: &[u8]| {
            let mut out = [0; 64];
            encode(name, &mut out).expect("it has one");
            u16::from_be_bytes([out[0], out[1]]) >> 4
        };
        let firsts = (0..=255).map(|byte| first_bits(&component(8, &[byte])));
        assert!(firsts.chain([first_bits(b""), first_bits(&[8, 0]), first_bits(&[1, 0])]).all(|bits| bits != 0));
    }
}
