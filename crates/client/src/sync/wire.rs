//! Sync Interests of both versions, as bytes.
//!
//! ```text
//!   version 2:  /<group>/v=2/params-sha256   ApplicationParameters = StateVector
//!   version 3:  /<group>/v=3/params-sha256   ApplicationParameters = Data { Content = StateVector }
//!
//!   StateVector 201 { StateVectorEntry 202 … }
//!   version 2: StateVectorEntry { Name, SeqNo 204 }
//!   version 3: StateVectorEntry { Name, SeqNoEntry 210 { BootstrapTime 212, SeqNo 214 } … }
//! ```
//!
//! Readers skip unknown elements of an even type, and refuse others. A vector of more than [`ENTRIES_MAX`] entries is
//! refused: it does not fit into a packet.

use namewire_packet::tlv::{self, Element, Reader, types};
use namewire_packet::{Data, Name, NameError, PacketError, TlvError};

use super::Version;
use super::vector::{Producer, StateVector};

/// Most entries of one vector. An entry takes at least 7 bytes, a packet 8,800.
pub const ENTRIES_MAX: usize = 1_250;

const STATE_VECTOR: u32 = 201;
const STATE_VECTOR_ENTRY: u32 = 202;
const SEQ_NO_V2: u32 = 204;
const SEQ_NO_ENTRY: u32 = 210;
const BOOTSTRAP_TIME: u32 = 212;
const SEQ_NO_V3: u32 = 214;

/// Why the parameters of a sync Interest are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VectorError {
    /// The TLV structure is broken.
    #[error("malformed TLV: {0}")]
    Tlv(#[from] TlvError),
    /// A producer's name is malformed.
    #[error("malformed name: {0}")]
    Name(#[from] NameError),
    /// The Data of version 3 is malformed.
    #[error("malformed Data: {0}")]
    Data(#[from] PacketError),
    /// A required element is absent.
    #[error("required element {0} is absent")]
    Missing(u32),
    /// An element is unknown, repeated or in the wrong place.
    #[error("element {0} is unknown, repeated or out of order")]
    Unexpected(u32),
    /// There are more than [`ENTRIES_MAX`] entries.
    #[error("the vector has more than {ENTRIES_MAX} entries")]
    TooManyEntries,
}

/// Reads the vector from the ApplicationParameters of a sync Interest. Signatures are not checked.
///
/// # Errors
/// [`VectorError`] says what is wrong with them.
pub fn read_parameters(version: Version, parameters: &[u8]) -> Result<StateVector, VectorError> {
    match version {
        Version::V2 => read_vector(version, parameters),
        Version::V3 => read_vector(version, Data::parse(tlv::read_element(parameters)?.wire)?.content()),
    }
}

/// Reads a StateVector, and skips what may follow it.
///
/// # Errors
/// As [`read_parameters`].
pub fn read_vector(version: Version, wire: &[u8]) -> Result<StateVector, VectorError> {
    let mut elements = Reader::new(wire);
    let value = required(&mut elements, STATE_VECTOR)?;
    let (mut vector, mut entries, mut left) = (StateVector::default(), Reader::new(value), ENTRIES_MAX);
    while let Some(entry) = next_known(&mut entries, STATE_VECTOR_ENTRY)? {
        read_entry(version, entry.value, &mut vector, &mut left)?;
    }
    Ok(vector)
}

/// Adds one entry to the vector. `left` counts down the numbers that may still come.
fn read_entry(version: Version, value: &[u8], vector: &mut StateVector, left: &mut usize) -> Result<(), VectorError> {
    let mut fields = Reader::new(value);
    let name = Name::parse_value(required(&mut fields, types::NAME)?)?.to_buf();
    let mut producer = Producer { name, bootstrap_s: 0 };
    let mut add = |producer: &Producer, number| -> Result<(), VectorError> {
        *left = left.checked_sub(1).ok_or(VectorError::TooManyEntries)?;
        vector.raise(producer, number);
        Ok(())
    };
    match version {
        Version::V2 => {
            add(&producer, tlv::read_nni(required(&mut fields, SEQ_NO_V2)?)?)?;
            next_known(&mut fields, 0)?;
        }
        Version::V3 => {
            while let Some(run) = next_known(&mut fields, SEQ_NO_ENTRY)? {
                let mut numbers = Reader::new(run.value);
                producer.bootstrap_s = tlv::read_nni(required(&mut numbers, BOOTSTRAP_TIME)?)?;
                let number = tlv::read_nni(required(&mut numbers, SEQ_NO_V3)?)?;
                next_known(&mut numbers, 0)?;
                add(&producer, number)?;
            }
        }
    }
    Ok(())
}

/// The next element of this type; `None` at the end. Skips elements that readers may ignore; type 0 wants none.
fn next_known<'a>(elements: &mut Reader<'a>, wanted: u32) -> Result<Option<Element<'a>>, VectorError> {
    const KNOWN: [u32; 6] = [STATE_VECTOR, STATE_VECTOR_ENTRY, SEQ_NO_V2, SEQ_NO_ENTRY, BOOTSTRAP_TIME, SEQ_NO_V3];
    while let Some(element) = elements.next_element()? {
        let number = element.type_number;
        if number == wanted {
            return Ok(Some(element));
        }
        if number < 32 || !number.is_multiple_of(2) || KNOWN.contains(&number) {
            return Err(VectorError::Unexpected(number));
        }
    }
    Ok(None)
}

/// The value of the next element, which must be of this type.
fn required<'a>(elements: &mut Reader<'a>, wanted: u32) -> Result<&'a [u8], VectorError> {
    next_known(elements, wanted)?.map(|element| element.value).ok_or(VectorError::Missing(wanted))
}

/// Appends the StateVector of this version.
pub fn write_vector(version: Version, vector: &StateVector, out: &mut Vec<u8>) {
    tlv::write_nested(out, STATE_VECTOR, |out| {
        let mut entries = vector.iter().peekable();
        while let Some((producer, number)) = entries.next() {
            tlv::write_nested(out, STATE_VECTOR_ENTRY, |out| {
                producer.name.as_name().write_tlv(out);
                if version == Version::V2 {
                    return tlv::write_nni(out, SEQ_NO_V2, number);
                }
                write_run(out, producer.bootstrap_s, number);
                while let Some((other, number)) = entries.next_if(|(other, _)| other.name == producer.name) {
                    write_run(out, other.bootstrap_s, number);
                }
            });
        }
    });
}

fn write_run(out: &mut Vec<u8>, bootstrap_s: u64, number: u64) {
    tlv::write_nested(out, SEQ_NO_ENTRY, |out| {
        tlv::write_nni(out, BOOTSTRAP_TIME, bootstrap_s);
        tlv::write_nni(out, SEQ_NO_V3, number);
    });
}

#[cfg(test)]
mod tests {
    use super::super::vector::tests::{any_vector, producer};
    use super::*;
    use namewire_packet::{DataBuilder, Interest};
    use proptest::prelude::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    fn vector(entries: &[(Producer, u64)]) -> StateVector {
        let mut vector = StateVector::default();
        for (producer, number) in entries {
            vector.raise(producer, *number);
        }
        vector
    }

    fn written(version: Version, vector: &StateVector) -> Vec<u8> {
        let mut out = Vec::new();
        write_vector(version, vector, &mut out);
        out
    }

    /// The whole sync Interest that @ndn/svs 0.0.20250307 sent for `/bob` with number 300 in `/group`.
    #[test]
    fn the_interests_of_ndnts_are_read() {
        let v2 = "0554072c080567726f757036010202206be132b082db71e1701559cccbcea101d3d344e7321c6e7b08076b144b99d79421\
                  0012000a0491291fb30c0203e7240fc90dca0b07050803626f62cc02012c2c031b01c82e00";
        let v3 = "056c072c080567726f7570360103022083acbe334e0bd3ea61341517ec81e42e01639d903b2209e672fc02abb797045f21\
                  0012000a0440c459570c0203e7242e062c070a080567726f75703601031517c915ca1307050803626f62d20ad4046553f100\
                  d602012c16031b01c81700";
        for (version, wire, bootstrap_s) in [(Version::V2, v2, 0), (Version::V3, v3, 1_700_000_000)] {
            let wire = bytes(wire);
            let interest = Interest::parse(&wire).unwrap();
            assert!(interest.parameters_digest_is_valid());
            let parameters = interest.application_parameters().unwrap();
            assert_eq!(read_parameters(version, parameters), Ok(vector(&[(producer("/bob", bootstrap_s), 300)])));
        }
    }

    /// What @ndn/svs 0.0.20250307 and ndnd 1.5.0 encode.
    #[test]
    fn the_vectors_of_the_peers_are_read_and_written() {
        let ndnts = bytes("c91eca0b07050803626f62cc02012cca0f070a0805616c696365080178cc0105");
        let v2 = vector(&[(producer("/alice/x", 0), 5), (producer("/bob", 0), 300)]);
        assert_eq!(read_vector(Version::V2, &ndnts), Ok(v2.clone()));
        assert_eq!(written(Version::V2, &v2), ndnts);
        let ndnd = bytes(
            "c939ca1e07050803626f62d20ad4046553f100d602012cd209d4046553f109d60101\
             ca17070a0805616c696365080178d209d4046553f101d60105",
        );
        let (first, second) = (1_700_000_000, 1_700_000_009);
        let v3 = vector(&[
            (producer("/alice/x", 1_700_000_001), 5),
            (producer("/bob", first), 300),
            (producer("/bob", second), 1),
        ]);
        assert_eq!(read_vector(Version::V3, &ndnd), Ok(v3.clone()));
        assert_eq!(written(Version::V3, &v3), ndnd);
        assert_eq!(read_vector(Version::V3, &bytes("c900")), Ok(StateVector::default()));
    }

    #[test]
    fn bad_vectors_are_refused_with_the_reason() {
        let error = |version, hex| read_vector(version, &bytes(hex)).unwrap_err();
        assert_eq!(error(Version::V2, ""), VectorError::Missing(201));
        assert_eq!(error(Version::V2, "ca00"), VectorError::Unexpected(202));
        assert_eq!(error(Version::V2, "c904ca020700"), VectorError::Missing(204));
        assert_eq!(error(Version::V2, "c907ca0507"), VectorError::Tlv(TlvError::Truncated));
        assert_eq!(error(Version::V3, "c907ca050700cc0105"), VectorError::Unexpected(204));
        assert_eq!(error(Version::V2, "c909ca070700cc03010203"), VectorError::Tlv(TlvError::BadInteger));
        let many = |count: usize| {
            let mut out = Vec::new();
            tlv::write_nested(&mut out, STATE_VECTOR, |out| out.extend(bytes("ca050700cc0101").repeat(count)));
            read_vector(Version::V2, &out)
        };
        assert_eq!(many(ENTRIES_MAX).map(|vector| vector.len()), Ok(1));
        assert_eq!(many(ENTRIES_MAX + 1), Err(VectorError::TooManyEntries));
    }

    proptest! {
        #[test]
        fn a_written_vector_is_read_back(vector in any_vector()) {
            let data = DataBuilder::new("/group/v=3".parse::<namewire_packet::NameBuf>().unwrap());
            let content = written(Version::V3, &vector);
            let wire = data.content(&content).sign_digest();
            prop_assert_eq!(read_parameters(Version::V3, &wire), Ok(vector));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let mut wire = Vec::new();
            tlv::write_tlv(&mut wire, STATE_VECTOR, &bytes);
            for version in [Version::V2, Version::V3] {
                if let Ok(vector) = read_vector(version, &wire) {
                    prop_assert_eq!(read_vector(version, &written(version, &vector)), Ok(vector));
                }
            }
        }
    }
}
