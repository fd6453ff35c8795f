//! The parts of the program `bpf/steer.c` that the kernel needs: its instructions, its map and its licence.
//!
//! Source: the object `bpf/steer.o`, the ELF file that the compiler makes. Nothing reads ELF when the router runs: the
//! place of the instructions in the file is a constant here, and a test compares it, and all else, with the object.
//!
//! One instruction, of two words, loads the address of the map. The object has zeroes there. In their place comes the
//! map's descriptor (Documentation/bpf/standardization/instruction-set.rst, "64-bit immediate instructions"):
//!
//! ```text
//!   word    │ code 8 │ to 4 │ from 4 │ offset 16 │ value 32 │     bits, from the lowest
//!                            └─ 1: the value is a map's descriptor
//! ```
//!
//! Cost: 184 bytes copied. Limit: the object is for little-endian processors.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Names in `bpf/steer.c`.
pub(crate) const PROGRAM: &str = "steer";
pub(crate) const SOCKETS: &str = "sockets";

/// Places for sockets: most queues of an interface.
pub(crate) const SOCKETS_MAX: u32 = 1_024;

pub(crate) const LICENCE: &CStr = c"MIT OR Apache-2.0";

const OBJECT: &[u8] = include_bytes!("../bpf/steer.o");

/// Where the instructions are in the object, in bytes.
const STARTS_AT: usize = 64;

/// Words of eight bytes. All instructions but that with the map's address have one.
const WORDS: usize = 23;

/// The word for the map's descriptor.
const MAP_AT: usize = 18;

/// `BPF_PSEUDO_MAP_FD` of linux/bpf.h, in its place in a word.
const IS_MAP_DESCRIPTOR: u64 = 1 << 12;

/// The instructions, with this map.
pub(crate) fn instructions(map: BorrowedFd<'_>) -> [u64; WORDS] {
    let mut words = WITHOUT_MAP;
    words[MAP_AT] |= IS_MAP_DESCRIPTOR | u64::from(map.as_raw_fd().cast_unsigned()) << 32;
    words
}

const WITHOUT_MAP: [u64; WORDS] = {
    let mut words = [0; WORDS];
    let mut rest = OBJECT.split_at(STARTS_AT).1;
    let mut i = 0;
    while i < WORDS {
        let (word, behind) = rest.split_first_chunk().expect("the object is longer");
        (words[i], rest) = (u64::from_le_bytes(*word), behind);
        i += 1;
    }
    words
};

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget};

    use super::*;
    use crate::bpf::BPF_MAP_TYPE_XSKMAP;

    fn section(name: &str) -> Vec<u8> {
        let object = object::File::parse(OBJECT).expect("an ELF file");
        object.section_by_name(name).expect("it is there").data().expect("its bytes").to_vec()
    }

    #[test]
    fn the_instructions_are_those_of_the_object() {
        let bytes = WITHOUT_MAP.map(u64::to_le_bytes);
        assert_eq!(bytes.as_flattened(), section("xdp"));
    }

    #[test]
    fn only_the_word_for_the_map_differs() {
        let map = std::fs::File::open("/dev/null").expect("any descriptor");
        let words = instructions(map.as_fd());
        for (i, (word, before)) in words.iter().zip(WITHOUT_MAP).enumerate() {
            if i != MAP_AT {
                assert_eq!(*word, before, "word {i}");
            }
        }
        // Load 64 bits (0x18) to r1 from the pseudo register 1.
        let [code, registers, 0, 0, value @ ..] = words[MAP_AT].to_le_bytes() else { panic!("an offset") };
        assert_eq!((code, registers), (0x18, 0x11));
        assert_eq!(i32::from_le_bytes(value), map.as_raw_fd());
    }

    #[test]
    fn the_object_needs_the_map_there_and_nothing_else() {
        let object = object::File::parse(OBJECT).expect("an ELF file");
        let program = object.section_by_name("xdp").expect("the program");
        let [(place, relocation)] = program.relocations().collect::<Vec<_>>().try_into().expect("one relocation");
        assert_eq!(place, 8 * MAP_AT as u64);
        let RelocationTarget::Symbol(symbol) = relocation.target() else { panic!("of a symbol") };
        let symbol = object.symbol_by_index(symbol).expect("it is there");
        assert_eq!(symbol.name(), Ok(SOCKETS));
        assert_eq!(symbol.address(), 0);
        assert!(object.symbols().any(|symbol| symbol.name() == Ok(PROGRAM)));
    }

    #[test]
    fn map_and_licence_are_those_of_the_object() {
        let definition = [BPF_MAP_TYPE_XSKMAP, 4, 4, SOCKETS_MAX, 0].map(u32::to_le_bytes);
        assert_eq!(definition.as_flattened(), section("maps"));
        assert_eq!(LICENCE.to_bytes_with_nul(), section("license"));
    }
}
