//! Datasets: sequences of elements.

use super::field::NfdError;
use crate::tlv::Reader;

/// An element of a dataset.
pub trait DatasetEntry: Sized {
    /// Appends the element with type and length.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads one whole element, type and length included.
    ///
    /// # Errors
    /// If the bytes are not exactly one element of this kind.
    fn decode(wire: &[u8]) -> Result<Self, NfdError>;
}

/// An element that a dataset of its own lists.
pub trait Dataset: DatasetEntry {
    /// Module and name under `/localhost/nfd`: `status/drops`.
    const NAME: &'static str;

    /// Reads the whole dataset.
    ///
    /// # Errors
    /// As [`decode_dataset`].
    fn decode_all(content: &[u8]) -> Result<Vec<Self>, NfdError> {
        decode_dataset(content)
    }
}

/// Reads a dataset: the Contents of all its segments joined in order.
///
/// # Errors
/// If an element is malformed, of another type, or cut off at the end.
pub fn decode_dataset<T: DatasetEntry>(content: &[u8]) -> Result<Vec<T>, NfdError> {
    let mut reader = Reader::new(content);
    let mut entries = Vec::new();
    while let Some(element) = reader.next_element()? {
        entries.push(T::decode(element.wire)?);
    }
    Ok(entries)
}

/// Joins the elements of a dataset, ready to be cut into segments.
pub fn encode_dataset<T: DatasetEntry>(entries: &[T]) -> Vec<u8> {
    let mut content = Vec::new();
    for entry in entries {
        entry.encode(&mut content);
    }
    content
}
