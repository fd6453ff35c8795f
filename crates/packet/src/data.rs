//! Data: named, signed content (packet-format §5).

use crate::{
    PacketError,
    digest::sha256,
    is_ignorable,
    name::{Component, Name, NameBuf},
    signature::{SignatureInfo, signature_type},
    tlv::{self, Element, Reader, offset_in, types},
};

/// ContentTypes whose Content is not the requested object (packet-format §5).
pub mod content_type {
    /// A list of names under which the object may be found.
    pub const LINK: u64 = 1;
    /// An application Nack: the producer has no such Data.
    pub const NACK: u64 = 3;
    /// A list of implicit digests.
    pub const MANIFEST: u64 = 4;
}

/// A checked Data, borrowed from its bytes. [`Data::parse`] reads the fields that every hop needs; an accessor finds
/// any other field in the bytes when it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    wire: &'a [u8],
    name: Name<'a>,
    freshness_ms: u64,
}

const _: () = assert!(size_of::<Data<'_>>() == 48, "a batch has 64 of them");

impl<'a> Data<'a> {
    /// Checks one Data that fills `wire`. The signature is not verified.
    ///
    /// # Errors
    /// If `wire` is not exactly one Data, if its Name or a field is malformed, if Name, SignatureInfo or SignatureValue
    /// is absent, or if a critical element is unknown, repeated or out of order.
    #[inline]
    pub fn parse(wire: &'a [u8]) -> Result<Self, PacketError> {
        Self::parse_noting(wire, |_, _| {})
    }

    /// [`Data::parse`], and calls `note` with each number of components from 1 and the bytes of the name after that
    /// many. If the numbers begin again with 1, only the later calls count. If the packet is refused, none counts.
    ///
    /// # Errors
    /// As [`Data::parse`].
    ///
    /// N.B. A Data in the usual form takes the straight way. Any other is read by [`Data::parse_any_form`], which
    /// decides alone what is refused: the straight way refuses nothing.
    #[inline(always)]
    pub fn parse_noting(wire: &'a [u8], mut note: impl FnMut(usize, usize)) -> Result<Self, PacketError> {
        match Self::read_usual(wire, &mut note) {
            Some(data) => Ok(data),
            None => Self::parse_any_form(wire).inspect(|data| data.name.note_components(note)),
        }
    }

    /// The Data that fills `wire`, if it has the usual form: the five elements in order with types of one byte and
    /// lengths of one or three. MetaInfo and Content may be absent.
    #[inline(always)]
    fn read_usual(wire: &'a [u8], note: impl FnMut(usize, usize)) -> Option<Self> {
        let value = tlv::usual_value(wire, types::DATA as u8)?;
        let (name, mut rest) = Name::read_usual(value, note)?;
        let mut freshness_ms = 0;
        if let [META_INFO, length @ 0..=252, after @ ..] = rest {
            let (value, after) = after.split_at_checked(usize::from(*length))?;
            (freshness_ms, rest) = (freshness_of(value)?, after);
        }
        if let Some(after) = tlv::after_usual(rest, types::CONTENT as u8) {
            rest = after;
        }
        let [SIGNATURE_INFO, length @ 0..=252, after @ ..] = rest else { return None };
        let (info, rest) = after.split_at_checked(usize::from(*length))?;
        if !matches!(info, [SIGNATURE_TYPE, 1, _]) && !is_signature_info(info) {
            return None;
        }
        tlv::usual_value(rest, types::SIGNATURE_VALUE as u8)?;
        Some(Data { wire, name, freshness_ms })
    }

    /// [`Data::parse`] without the straight way for the usual form: element by element. Tests and the fuzzer compare
    /// the two.
    ///
    /// # Errors
    /// As [`Data::parse`].
    #[cold]
    #[inline(never)]
    pub fn parse_any_form(wire: &'a [u8]) -> Result<Self, PacketError> {
        let outer = tlv::read_element(wire)?;
        if outer.type_number != types::DATA {
            return Err(PacketError::WrongType { expected: types::DATA, found: outer.type_number });
        }
        if outer.wire.len() != wire.len() {
            return Err(PacketError::TrailingBytes);
        }
        if u32::try_from(wire.len()).is_err() {
            return Err(PacketError::BadValue(types::DATA));
        }
        let mut reader = Reader::new(outer.value);
        let first = reader.next_element()?.ok_or(PacketError::Missing(types::NAME))?;
        if first.type_number != types::NAME {
            return Err(PacketError::Missing(types::NAME));
        }
        let name = Name::parse_value_of_data(first.value)?;
        let mut freshness_ms = 0;
        let mut last_type = types::META_INFO - 1;
        let mut has_signature_info = false;
        while let Some(element) = reader.next_element()? {
            let type_number = element.type_number;
            // The four elements come in the order of their type numbers.
            if type_number <= last_type || type_number > types::SIGNATURE_VALUE {
                if is_ignorable(type_number) {
                    continue;
                }
                return Err(PacketError::UnexpectedCritical(type_number)); // all four are critical
            }
            last_type = type_number;
            match type_number {
                types::META_INFO => freshness_ms = MetaInfo::parse_value(element.value)?.freshness_ms,
                types::SIGNATURE_INFO => {
                    SignatureInfo::parse_value(element.value)?;
                    has_signature_info = true;
                }
                _ => {} // the content or the signature's value, any bytes
            }
        }
        if !has_signature_info {
            return Err(PacketError::Missing(types::SIGNATURE_INFO));
        }
        if last_type != types::SIGNATURE_VALUE {
            return Err(PacketError::Missing(types::SIGNATURE_VALUE));
        }
        Ok(Data { wire, name, freshness_ms })
    }

    /// The first element of this type after the Name.
    fn element(&self, type_number: u32) -> Option<Element<'a>> {
        let name = self.name.value();
        let mut reader = Reader::new(&self.wire[offset_in(self.wire, name) as usize + name.len()..]);
        while let Some(element) = reader.next_element().ok().flatten() {
            if element.type_number == type_number {
                return Some(element);
            }
        }
        None
    }

    /// The TLV-VALUE of the element of this type, empty if it is absent.
    fn value(&self, type_number: u32) -> &'a [u8] {
        self.element(type_number).map_or(&[], |element| element.value)
    }

    fn meta_info(&self) -> MetaInfo<'a> {
        MetaInfo::parse_value(self.value(types::META_INFO)).unwrap_or_default()
    }

    /// The whole element.
    pub const fn wire(&self) -> &'a [u8] {
        self.wire
    }

    /// The name; may have zero components.
    pub const fn name(&self) -> Name<'a> {
        self.name
    }

    /// ContentType, 0 (Blob) if absent.
    pub fn content_type(&self) -> u64 {
        self.meta_info().content_type
    }

    /// FreshnessPeriod in milliseconds, 0 (never fresh) if absent.
    pub const fn freshness_ms(&self) -> u64 {
        self.freshness_ms
    }

    /// The last component of the last packet of this collection.
    pub fn final_block_id(&self) -> Option<Component<'a>> {
        Name::parse_value(self.meta_info().final_block_id?).ok()?.last()
    }

    /// Content, empty if absent.
    pub fn content(&self) -> &'a [u8] {
        self.value(types::CONTENT)
    }

    /// SignatureInfo. Cost: read anew each time.
    pub fn signature_info(&self) -> SignatureInfo<'a> {
        // `parse` has read it once; a broken promise must not look like a signature.
        SignatureInfo::parse_value(self.value(types::SIGNATURE_INFO)).unwrap_or(SignatureInfo::NULL)
    }

    /// The TLV-VALUE of SignatureInfo, for the elements that [`SignatureInfo`] skips: a certificate's ValidityPeriod
    /// and extensions (§5.2).
    pub fn signature_info_value(&self) -> &'a [u8] {
        self.value(types::SIGNATURE_INFO)
    }

    /// SignatureValue.
    pub fn signature_value(&self) -> &'a [u8] {
        self.value(types::SIGNATURE_VALUE)
    }

    /// The bytes that the signature covers: Name up to the signature value, unknown elements included.
    pub fn signed_portion(&self) -> &'a [u8] {
        let value = tlv::read_element(self.wire).map_or(&[][..], |outer| outer.value);
        let signature = self.element(types::SIGNATURE_VALUE).map_or(value, |signature| signature.wire);
        &value[..offset_in(value, signature) as usize]
    }

    /// SHA-256 over the whole element. Cost: one digest; not remembered.
    pub fn implicit_digest(&self) -> [u8; 32] {
        sha256(&[self.wire])
    }

    /// True if the signature is a correct DigestSha256. Cost: one digest.
    pub fn verify_digest_sha256(&self) -> bool {
        self.signature_info().signature_type() == signature_type::DIGEST_SHA256
            && self.signature_value() == sha256(&[self.signed_portion()])
    }
}

/// Types of one byte, as [`Data::read_usual`] compares them.
const META_INFO: u8 = types::META_INFO as u8;
const FRESHNESS_PERIOD: u8 = types::FRESHNESS_PERIOD as u8;
const SIGNATURE_INFO: u8 = types::SIGNATURE_INFO as u8;
const SIGNATURE_TYPE: u8 = types::SIGNATURE_TYPE as u8;

/// The FreshnessPeriod in the TLV-VALUE of a MetaInfo, which usually holds nothing else. `None` if the value is
/// refused.
#[inline(always)]
fn freshness_of(meta_info: &[u8]) -> Option<u64> {
    match *meta_info {
        [FRESHNESS_PERIOD, 2, high, low] => Some(u16::from_be_bytes([high, low]).into()),
        [FRESHNESS_PERIOD, 4, a, b, c, d] => Some(u32::from_be_bytes([a, b, c, d]).into()),
        _ => freshness_among_others(meta_info),
    }
}

#[inline(never)]
fn freshness_among_others(meta_info: &[u8]) -> Option<u64> {
    MetaInfo::parse_value(meta_info).ok().map(|meta| meta.freshness_ms)
}

/// Whether this is the TLV-VALUE of a SignatureInfo of any form.
#[inline(never)]
fn is_signature_info(value: &[u8]) -> bool {
    SignatureInfo::parse_value(value).is_ok()
}

#[derive(Default)]
struct MetaInfo<'a> {
    content_type: u64,
    freshness_ms: u64,
    /// TLV-VALUE of FinalBlockId: one component.
    final_block_id: Option<&'a [u8]>,
}

impl<'a> MetaInfo<'a> {
    fn parse_value(value: &'a [u8]) -> Result<Self, PacketError> {
        let mut meta = MetaInfo::default();
        let mut reader = Reader::new(value);
        let mut last_place = 0;
        while let Some(Element { type_number, value, .. }) = reader.next_element()? {
            let place = match type_number {
                types::CONTENT_TYPE => 1,
                types::FRESHNESS_PERIOD => 2,
                types::FINAL_BLOCK_ID => 3,
                other if is_ignorable(other) => continue,
                other => return Err(PacketError::UnexpectedCritical(other)),
            };
            if place <= last_place {
                return Err(PacketError::UnexpectedCritical(type_number));
            }
            last_place = place;
            match place {
                1 => meta.content_type = tlv::read_nni(value)?,
                2 => meta.freshness_ms = tlv::read_nni(value)?,
                _ => {
                    let name = Name::parse_value(value)?;
                    if name.len() != 1 {
                        return Err(PacketError::BadValue(types::FINAL_BLOCK_ID)); // exactly one component
                    }
                    meta.final_block_id = Some(value);
                }
            }
        }
        Ok(meta)
    }
}

/// Writes Data.
///
/// ```
/// # use namewire_packet::{Data, DataBuilder, NameBuf};
/// let name: NameBuf = "/example/data".parse().unwrap();
/// let wire = DataBuilder::new(&name).freshness_ms(1000).content(b"hello").sign_digest();
/// assert!(Data::parse(&wire).unwrap().verify_digest_sha256());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataBuilder<'a> {
    name: NameBuf,
    content_type: u64,
    freshness_ms: u64,
    final_block_id: Option<NameBuf>,
    content: &'a [u8],
    signature_info_extension: &'a [u8],
}

impl<'a> DataBuilder<'a> {
    /// Starts a Data with an empty content. `name` must not contain an implicit digest, because [`Data::parse`] refuses
    /// such a packet: to answer an Interest that ends in a digest, give the name without it.
    pub fn new(name: impl Into<NameBuf>) -> Self {
        DataBuilder {
            name: name.into(),
            content_type: 0,
            freshness_ms: 0,
            final_block_id: None,
            content: &[],
            signature_info_extension: &[],
        }
    }

    /// Sets ContentType; 0 is the default and is not written.
    pub fn content_type(mut self, content_type: u64) -> Self {
        self.content_type = content_type;
        self
    }

    /// Sets FreshnessPeriod; 0 is the default and is not written.
    pub fn freshness_ms(mut self, freshness_ms: u64) -> Self {
        self.freshness_ms = freshness_ms;
        self
    }

    /// Sets FinalBlockId.
    pub fn final_block_id(mut self, component: Component<'_>) -> Self {
        let mut name = NameBuf::new();
        name.push(component);
        self.final_block_id = Some(name);
        self
    }

    /// Sets FinalBlockId to a segment number.
    pub fn final_segment(mut self, segment: u64) -> Self {
        let mut name = NameBuf::new();
        name.push_segment(segment);
        self.final_block_id = Some(name);
        self
    }

    /// Sets the content.
    pub fn content(mut self, content: &'a [u8]) -> Self {
        self.content = content;
        self
    }

    /// Sets elements for the end of SignatureInfo: the ValidityPeriod of a certificate (§5.2).
    pub fn signature_info_extension(mut self, elements: &'a [u8]) -> Self {
        self.signature_info_extension = elements;
        self
    }

    /// Writes the packet signed with DigestSha256.
    pub fn sign_digest(&self) -> Vec<u8> {
        self.sign_with(signature_type::DIGEST_SHA256, None, |signed| sha256(&[signed]).to_vec())
    }

    /// Writes the packet signed by `sign`, which is given the signed bytes.
    pub fn sign_with(
        &self,
        signature_type: u64,
        key_locator: Option<&NameBuf>,
        sign: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Vec<u8> {
        self.sign_timed_with(signature_type, key_locator, None, sign)
    }

    /// The same, with SignatureTime in milliseconds since 1970.
    pub fn sign_timed_with(
        &self,
        signature_type: u64,
        key_locator: Option<&NameBuf>,
        time_ms: Option<u64>,
        sign: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.name.value().len() + self.content.len() + 96);
        tlv::write_nested(&mut out, types::DATA, |out| {
            let start = out.len();
            self.name.as_name().write_tlv(out);
            self.write_meta_info(out);
            tlv::write_tlv(out, types::CONTENT, self.content);
            tlv::write_nested(out, types::SIGNATURE_INFO, |out| {
                tlv::write_nni(out, types::SIGNATURE_TYPE, signature_type);
                if let Some(name) = key_locator {
                    tlv::write_nested(out, types::KEY_LOCATOR, |out| name.as_name().write_tlv(out));
                }
                if let Some(time_ms) = time_ms {
                    tlv::write_nni(out, types::SIGNATURE_TIME, time_ms);
                }
                out.extend_from_slice(self.signature_info_extension);
            });
            let signature = sign(&out[start..]);
            tlv::write_tlv(out, types::SIGNATURE_VALUE, &signature);
        });
        out
    }

    fn write_meta_info(&self, out: &mut Vec<u8>) {
        if self.content_type == 0 && self.freshness_ms == 0 && self.final_block_id.is_none() {
            return;
        }
        tlv::write_nested(out, types::META_INFO, |out| {
            if self.content_type != 0 {
                tlv::write_nni(out, types::CONTENT_TYPE, self.content_type);
            }
            if self.freshness_ms != 0 {
                tlv::write_nni(out, types::FRESHNESS_PERIOD, self.freshness_ms);
            }
            if let Some(component) = &self.final_block_id {
                tlv::write_tlv(out, types::FINAL_BLOCK_ID, component.value());
            }
        });
    }
}
