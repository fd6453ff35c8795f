//! Interest: a request for Data by name (packet-format §4).

use crate::{
    Data, Nonce, PacketError,
    digest::sha256,
    is_ignorable,
    name::{Name, NameBuf, NameScan},
    signature::{SignatureInfo, signature_type},
    tlv::{self, Reader, offset_in, types},
};

/// InterestLifetime when the element is absent, in milliseconds.
pub const DEFAULT_LIFETIME_MS: u64 = 4000;

/// A checked Interest, borrowed from its bytes. [`Interest::parse`] reads the fields that every hop needs; an accessor
/// finds any other field in the bytes when it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest<'a> {
    wire: &'a [u8],
    name: Name<'a>,
    lifetime_ms: u64,
    /// Where in `wire` the value is; 0 means none, because no value can begin there.
    nonce_offset: u32,
    hop_limit_offset: u32,
    /// Where the element of a non-empty ForwardingHint begins; 0 means none.
    forwarding_hint_offset: u32,
    flags: u8,
}

const _: () = assert!(size_of::<Interest<'_>>() == 64, "a batch has 64 of them");

/// CanBePrefix.
const PREFIX_FLAG: u8 = 1;
/// MustBeFresh.
const FRESH_FLAG: u8 = 2;
/// The last component is an implicit digest.
const DIGEST_FLAG: u8 = 4;
/// There are ApplicationParameters.
const PARAMETERS_FLAG: u8 = 8;

/// Types of one byte, as [`Interest::read_usual`] compares them.
const CAN_BE_PREFIX: u8 = types::CAN_BE_PREFIX as u8;
const MUST_BE_FRESH: u8 = types::MUST_BE_FRESH as u8;
const NONCE: u8 = types::NONCE as u8;
const INTEREST_LIFETIME: u8 = types::INTEREST_LIFETIME as u8;
const HOP_LIMIT: u8 = types::HOP_LIMIT as u8;

/// The place of each recognized element after the Name in the grammar, by type; 0 = unrecognized.
const PLACES: [u8; 64] = {
    let mut places = [0; 64];
    places[types::CAN_BE_PREFIX as usize] = 1;
    places[types::MUST_BE_FRESH as usize] = 2;
    places[types::FORWARDING_HINT as usize] = 3;
    places[types::NONCE as usize] = 4;
    places[types::INTEREST_LIFETIME as usize] = 5;
    places[types::HOP_LIMIT as usize] = 6;
    places[types::APPLICATION_PARAMETERS as usize] = 7;
    places[types::INTEREST_SIGNATURE_INFO as usize] = 8;
    places[types::INTEREST_SIGNATURE_VALUE as usize] = 9;
    places
};

/// The accepted elements after the Name: recognized, and where the grammar wants them.
struct Elements<'a> {
    reader: Reader<'a>,
    last_place: u8,
}

impl<'a> Elements<'a> {
    fn next(&mut self) -> Result<Option<tlv::Element<'a>>, PacketError> {
        while let Some(element) = self.reader.next_element()? {
            let place = PLACES.get(element.type_number as usize).copied().unwrap_or(0);
            if place > self.last_place {
                self.last_place = place;
                return Ok(Some(element));
            }
            // Unrecognized, out of order or repeated: ignored if its type is non-critical. A second or late HopLimit is
            // refused nevertheless, because all hops must obey the same limit.
            if !is_ignorable(element.type_number) || element.type_number == types::HOP_LIMIT {
                return Err(PacketError::UnexpectedCritical(element.type_number));
            }
        }
        Ok(None)
    }
}

impl<'a> Interest<'a> {
    /// Checks one Interest that fills `wire`. Neither signature nor parameters digest is verified.
    ///
    /// # Errors
    /// If `wire` is not exactly one Interest, if its Name is absent, empty or malformed, if a field is malformed, if a
    /// critical element is unknown, repeated or out of order, if it has more than one ParametersSha256DigestComponent,
    /// or if it has ApplicationParameters without one (§4.1).
    #[inline]
    pub fn parse(wire: &'a [u8]) -> Result<Self, PacketError> {
        Self::parse_noting(wire, |_, _| {})
    }

    /// [`Interest::parse`], and calls `note` with each number of components from 1 and the bytes of the name after that
    /// many. If the numbers begin again with 1, only the later calls count. If the packet is refused, none counts.
    ///
    /// # Errors
    /// As [`Interest::parse`].
    ///
    /// N.B. An Interest in the usual form takes the straight way. Any other is read by [`Interest::parse_any_form`],
    /// which decides alone what is refused: the straight way refuses nothing.
    #[inline(always)]
    pub fn parse_noting(wire: &'a [u8], mut note: impl FnMut(usize, usize)) -> Result<Self, PacketError> {
        match Self::read_usual(wire, &mut note) {
            Some(interest) => Ok(interest),
            None => Self::parse_any_form(wire).inspect(|interest| interest.name.note_components(note)),
        }
    }

    /// The Interest that fills `wire`, if it has the usual form: types and lengths of one byte (three for the length of
    /// the Interest), no digest in the name, and after the name CanBePrefix, MustBeFresh, Nonce, InterestLifetime
    /// and HopLimit, in this order. All but the Nonce may be absent.
    ///
    /// N.B. Tests that hardly any Interest needs are inside others: one after another, with all that they may change
    /// kept in registers, they took 35 instructions more.
    #[inline(always)]
    fn read_usual(wire: &'a [u8], note: impl FnMut(usize, usize)) -> Option<Self> {
        let value = tlv::usual_value(wire, types::INTEREST as u8)?;
        let (name, rest) = Name::read_usual(value, note)?;
        let (flags, rest) = if let [NONCE, ..] = rest { (0, rest) } else { Self::read_flags(rest) };
        let [NONCE, 4, _, _, _, _, rest @ ..] = rest else { return None };
        // A name of no components is refused.
        if name.is_empty() {
            return None;
        }
        // What the elements before the rest take ends where the rest begins, and that ends with `wire`.
        let nonce_offset = (wire.len() - rest.len()) as u32 - 4;
        let (mut lifetime_ms, mut hop_limit_offset) = (DEFAULT_LIFETIME_MS, 0);
        if !rest.is_empty() {
            let after = match *rest {
                [INTEREST_LIFETIME, 2, high, low, ref after @ ..] => {
                    lifetime_ms = u16::from_be_bytes([high, low]).into();
                    after
                }
                [INTEREST_LIFETIME, 1, number, ref after @ ..] => {
                    lifetime_ms = number.into();
                    after
                }
                [INTEREST_LIFETIME, 4, a, b, c, d, ref after @ ..] => {
                    lifetime_ms = u32::from_be_bytes([a, b, c, d]).into();
                    after
                }
                _ => rest,
            };
            match after {
                [] => {}
                [HOP_LIMIT, 1, _] => hop_limit_offset = wire.len() as u32 - 1,
                _ => return None,
            }
        }
        let forwarding_hint_offset = 0;
        Some(Interest { wire, name, lifetime_ms, nonce_offset, hop_limit_offset, forwarding_hint_offset, flags })
    }

    /// The flags that come before the Nonce, and what follows them.
    fn read_flags(mut rest: &[u8]) -> (u8, &[u8]) {
        let mut flags = 0;
        if let [CAN_BE_PREFIX, 0, after @ ..] = rest {
            (flags, rest) = (flags | PREFIX_FLAG, after);
        }
        if let [MUST_BE_FRESH, 0, after @ ..] = rest {
            (flags, rest) = (flags | FRESH_FLAG, after);
        }
        (flags, rest)
    }

    /// [`Interest::parse`] without the straight way for the usual form: element by element. Tests and the fuzzer
    /// compare the two.
    ///
    /// # Errors
    /// As [`Interest::parse`].
    #[cold]
    #[inline(never)]
    pub fn parse_any_form(wire: &'a [u8]) -> Result<Self, PacketError> {
        let outer = tlv::read_element(wire)?;
        if outer.type_number != types::INTEREST {
            return Err(PacketError::WrongType { expected: types::INTEREST, found: outer.type_number });
        }
        if outer.wire.len() != wire.len() {
            return Err(PacketError::TrailingBytes);
        }
        if u32::try_from(wire.len()).is_err() {
            return Err(PacketError::BadValue(types::INTEREST));
        }
        let mut reader = Reader::new(outer.value);

        // §1.1: nothing unrecognized may precede Name.
        let first = reader.next_element()?.ok_or(PacketError::Missing(types::NAME))?;
        if first.type_number != types::NAME {
            return Err(PacketError::Missing(types::NAME));
        }
        let NameScan { name, ends_in_implicit_digest, parameters_digests } = Name::scan::<false>(first.value)?;
        if name.is_empty() {
            return Err(PacketError::BadValue(types::NAME));
        }
        let mut interest = Interest {
            wire,
            name,
            lifetime_ms: DEFAULT_LIFETIME_MS,
            nonce_offset: 0,
            hop_limit_offset: 0,
            forwarding_hint_offset: 0,
            flags: if ends_in_implicit_digest { DIGEST_FLAG } else { 0 },
        };
        let mut elements = Elements { reader, last_place: 0 };
        while let Some(element) = elements.next()? {
            interest.accept(&element)?;
        }
        // ApplicationParameters needs one ParametersSha256DigestComponent; two never make sense (§4.1).
        match (parameters_digests, interest.flags & PARAMETERS_FLAG != 0) {
            (0, true) | (2.., _) => Err(PacketError::BadValue(types::PARAMETERS_SHA256_DIGEST)),
            _ => Ok(interest),
        }
    }

    fn accept(&mut self, element: &tlv::Element<'a>) -> Result<(), PacketError> {
        let bad = Err(PacketError::BadValue(element.type_number));
        let value = element.value;
        match element.type_number {
            types::CAN_BE_PREFIX | types::MUST_BE_FRESH if !value.is_empty() => return bad,
            types::CAN_BE_PREFIX => self.flags |= PREFIX_FLAG,
            types::MUST_BE_FRESH => self.flags |= FRESH_FLAG,
            types::FORWARDING_HINT => {
                check_forwarding_hint(value)?;
                self.forwarding_hint_offset = if value.is_empty() { 0 } else { offset_in(self.wire, element.wire) };
            }
            types::NONCE if value.len() != 4 => return bad,
            types::NONCE => self.nonce_offset = offset_in(self.wire, value),
            types::INTEREST_LIFETIME => self.lifetime_ms = tlv::read_nni(value)?,
            types::HOP_LIMIT if value.len() != 1 => return bad,
            types::HOP_LIMIT => self.hop_limit_offset = offset_in(self.wire, value),
            types::APPLICATION_PARAMETERS => self.flags |= PARAMETERS_FLAG,
            types::INTEREST_SIGNATURE_INFO => {
                SignatureInfo::parse_value(value)?;
            }
            _ => {} // the signature's value, any bytes
        }
        Ok(())
    }

    /// The element of this type that [`Interest::parse`] has accepted, if there is one.
    fn element(&self, type_number: u32) -> Option<tlv::Element<'a>> {
        let mut elements = Elements { reader: Reader::new(self.after_name()), last_place: 0 };
        while let Some(element) = elements.next().ok().flatten() {
            if element.type_number == type_number {
                return Some(element);
            }
        }
        None
    }

    /// The whole element.
    pub const fn wire(&self) -> &'a [u8] {
        self.wire
    }

    /// The name, of one component or more.
    pub const fn name(&self) -> Name<'a> {
        self.name
    }

    /// True if Data under a longer name satisfies it too.
    pub const fn can_be_prefix(&self) -> bool {
        self.flags & PREFIX_FLAG != 0
    }

    /// True if a cache must not answer with stale Data.
    pub const fn must_be_fresh(&self) -> bool {
        self.flags & FRESH_FLAG != 0
    }

    /// The nonce, if the sender set one.
    pub fn nonce(&self) -> Option<Nonce> {
        let bytes = self.wire[self.nonce_offset()?..].first_chunk()?;
        Some(Nonce(*bytes))
    }

    /// Offset of the four nonce bytes in [`Interest::wire`].
    pub fn nonce_offset(&self) -> Option<usize> {
        (self.nonce_offset != 0).then_some(self.nonce_offset as usize)
    }

    /// InterestLifetime in milliseconds, 4000 if absent.
    pub const fn lifetime_ms(&self) -> u64 {
        self.lifetime_ms
    }

    /// HopLimit, if the sender set one.
    pub fn hop_limit(&self) -> Option<u8> {
        self.hop_limit_offset().map(|offset| self.wire[offset])
    }

    /// Offset of the HopLimit byte in [`Interest::wire`], to be patched in place.
    pub fn hop_limit_offset(&self) -> Option<usize> {
        (self.hop_limit_offset != 0).then_some(self.hop_limit_offset as usize)
    }

    /// True if there is a ForwardingHint that is not empty; it may still hold no name.
    pub const fn has_forwarding_hint(&self) -> bool {
        self.forwarding_hint_offset != 0
    }

    /// The delegations of the ForwardingHint in order of preference. Reads the present form and the one before 2022
    /// (Delegation elements).
    pub fn forwarding_hint(&self) -> impl Iterator<Item = Name<'a>> + use<'a> {
        let hint = self.has_forwarding_hint().then(|| &self.wire[self.forwarding_hint_offset as usize..]);
        let hint = hint.and_then(|from| tlv::read_element(from).ok());
        let mut reader = Reader::new(hint.map_or(&[], |hint| hint.value));
        std::iter::from_fn(move || {
            while let Some(element) = reader.next_element().ok().flatten() {
                if let Ok(Some(name)) = delegation_name(&element) {
                    return Some(name);
                }
            }
            None
        })
    }

    /// ApplicationParameters, which may be empty.
    pub fn application_parameters(&self) -> Option<&'a [u8]> {
        Some(self.element(types::APPLICATION_PARAMETERS)?.value)
    }

    /// InterestSignatureInfo, if it is signed. Cost: read anew each time.
    pub fn signature_info(&self) -> Option<SignatureInfo<'a>> {
        SignatureInfo::parse_value(self.element(types::INTEREST_SIGNATURE_INFO)?.value).ok()
    }

    /// InterestSignatureValue, if it is signed.
    pub fn signature_value(&self) -> Option<&'a [u8]> {
        Some(self.element(types::INTEREST_SIGNATURE_VALUE)?.value)
    }

    /// The bytes that the signature covers, in two pieces (§4.2): the components
    /// before the digest component, and ApplicationParameters up to the signature
    /// value. `None` unless it is signed and the digest component is last.
    pub fn signed_portion(&self) -> Option<(&'a [u8], &'a [u8])> {
        let parameters = self.element(types::APPLICATION_PARAMETERS)?;
        self.element(types::INTEREST_SIGNATURE_INFO)?;
        let signature = self.element(types::INTEREST_SIGNATURE_VALUE)?;
        let digest_is_last = self.name.last()?.type_number == types::PARAMETERS_SHA256_DIGEST;
        let (from, to) = (offset_in(self.wire, parameters.wire), offset_in(self.wire, signature.wire));
        let parameters = self.wire.get(from as usize..to as usize)?;
        digest_is_last.then(|| (self.name.parent().value(), parameters))
    }

    /// True if there are no parameters, or the digest component is the SHA-256 of
    /// ApplicationParameters and everything after it (§4.1). Cost: one digest.
    pub fn parameters_digest_is_valid(&self) -> bool {
        let Some(parameters) = self.element(types::APPLICATION_PARAMETERS) else { return true };
        let digest = sha256(&[&self.wire[offset_in(self.wire, parameters.wire) as usize..]]);
        self.name.components().any(|c| c.type_number == types::PARAMETERS_SHA256_DIGEST && c.value == digest)
    }

    /// The implicit digest that the last component asks for.
    pub fn implicit_digest(&self) -> Option<&'a [u8; 32]> {
        if self.flags & DIGEST_FLAG != 0 { self.name.value().last_chunk() } else { None }
    }

    /// The bytes of the TLV-VALUE after the Name.
    #[inline]
    pub fn after_name(&self) -> &'a [u8] {
        &self.wire[offset_in(self.wire, self.name.value()) as usize + self.name.value().len()..]
    }

    /// True if `data` answers this Interest (§6). MustBeFresh is not checked. Cost: a name comparison, and a SHA-256
    /// only if the Interest asks by digest.
    pub fn matches(&self, data: &Data<'_>) -> bool {
        let data_name = data.name();
        if let Some(digest) = self.implicit_digest()
            && self.name.len() == data_name.len() + 1
        {
            return self.name.parent() == data_name && *digest == data.implicit_digest();
        }
        if self.can_be_prefix() { self.name.is_prefix_of(&data_name) } else { self.name == data_name }
    }
}

fn check_forwarding_hint(value: &[u8]) -> Result<(), PacketError> {
    let mut reader = Reader::new(value);
    while let Some(element) = reader.next_element()? {
        delegation_name(&element)?;
    }
    Ok(())
}

/// The name in one child of ForwardingHint, `None` if the child is to be skipped.
fn delegation_name<'a>(element: &tlv::Element<'a>) -> Result<Option<Name<'a>>, PacketError> {
    match element.type_number {
        types::NAME => Ok(Some(Name::parse_value(element.value)?)),
        types::DELEGATION => {
            // Before packet format 0.3: Delegation { Preference, Name }.
            let mut reader = Reader::new(element.value);
            while let Some(inner) = reader.next_element()? {
                if inner.type_number == types::NAME {
                    return Ok(Some(Name::parse_value(inner.value)?));
                }
            }
            Err(PacketError::Missing(types::NAME))
        }
        other if is_ignorable(other) => Ok(None),
        other => Err(PacketError::UnexpectedCritical(other)),
    }
}

/// What a signed Interest carries against replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignedInterestFields {
    /// SignatureNonce; empty means none.
    pub nonce: Vec<u8>,
    /// SignatureTime, milliseconds since 1970.
    pub time_ms: Option<u64>,
    /// SignatureSeqNum.
    pub seq_num: Option<u64>,
}

/// Writes Interests.
///
/// ```
/// # use namewire_packet::{Interest, InterestBuilder, NameBuf, Nonce};
/// let name: NameBuf = "/example/data".parse().unwrap();
/// let wire = InterestBuilder::new(&name).can_be_prefix(true).nonce(Nonce([1, 2, 3, 4])).build();
/// assert!(Interest::parse(&wire).unwrap().can_be_prefix());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterestBuilder {
    name: NameBuf,
    can_be_prefix: bool,
    must_be_fresh: bool,
    forwarding_hint: Vec<NameBuf>,
    nonce: Option<Nonce>,
    lifetime_ms: Option<u64>,
    hop_limit: Option<u8>,
    application_parameters: Option<Vec<u8>>,
}

impl InterestBuilder {
    /// Starts an Interest for `name` with nothing else set.
    pub fn new(name: impl Into<NameBuf>) -> Self {
        InterestBuilder {
            name: name.into(),
            can_be_prefix: false,
            must_be_fresh: false,
            forwarding_hint: Vec::new(),
            nonce: None,
            lifetime_ms: None,
            hop_limit: None,
            application_parameters: None,
        }
    }

    /// The name as given.
    pub fn name(&self) -> &NameBuf {
        &self.name
    }

    /// Lets Data under longer names answer.
    pub fn can_be_prefix(mut self, yes: bool) -> Self {
        self.can_be_prefix = yes;
        self
    }

    /// Asks caches for fresh Data only.
    pub fn must_be_fresh(mut self, yes: bool) -> Self {
        self.must_be_fresh = yes;
        self
    }

    /// Sets the delegations, best first. An empty list writes no element.
    pub fn forwarding_hint(mut self, delegations: &[NameBuf]) -> Self {
        self.forwarding_hint = delegations.to_vec();
        self
    }

    /// Sets the nonce.
    pub fn nonce(mut self, nonce: Nonce) -> Self {
        self.nonce = Some(nonce);
        self
    }

    /// Sets InterestLifetime; 4000 is the default and is not written.
    pub fn lifetime_ms(mut self, lifetime_ms: u64) -> Self {
        self.lifetime_ms = Some(lifetime_ms);
        self
    }

    /// Sets HopLimit.
    pub fn hop_limit(mut self, hop_limit: u8) -> Self {
        self.hop_limit = Some(hop_limit);
        self
    }

    /// Sets ApplicationParameters; the digest component is appended to the name.
    pub fn application_parameters(mut self, parameters: Vec<u8>) -> Self {
        self.application_parameters = Some(parameters);
        self
    }

    /// Writes the packet.
    pub fn build(&self) -> Vec<u8> {
        let mut tail = Vec::new();
        if let Some(parameters) = &self.application_parameters {
            tlv::write_tlv(&mut tail, types::APPLICATION_PARAMETERS, parameters);
        }
        self.assemble(&tail)
    }

    /// Writes the packet signed with DigestSha256. Parameters that were not set become empty (§4.2).
    pub fn sign_digest(&self, fields: &SignedInterestFields) -> Vec<u8> {
        self.sign_with(signature_type::DIGEST_SHA256, None, fields, |pieces| sha256(pieces).to_vec())
    }

    /// Writes the packet signed by `sign`, which is given the signed bytes in pieces.
    pub fn sign_with(
        &self,
        signature_type: u64,
        key_locator: Option<&NameBuf>,
        fields: &SignedInterestFields,
        sign: impl FnOnce(&[&[u8]]) -> Vec<u8>,
    ) -> Vec<u8> {
        let mut tail = Vec::new();
        let parameters = self.application_parameters.as_deref().unwrap_or_default();
        tlv::write_tlv(&mut tail, types::APPLICATION_PARAMETERS, parameters);
        tlv::write_nested(&mut tail, types::INTEREST_SIGNATURE_INFO, |out| {
            tlv::write_nni(out, types::SIGNATURE_TYPE, signature_type);
            if let Some(name) = key_locator {
                tlv::write_nested(out, types::KEY_LOCATOR, |out| name.as_name().write_tlv(out));
            }
            if !fields.nonce.is_empty() {
                tlv::write_tlv(out, types::SIGNATURE_NONCE, &fields.nonce);
            }
            if let Some(time_ms) = fields.time_ms {
                tlv::write_nni(out, types::SIGNATURE_TIME, time_ms);
            }
            if let Some(seq_num) = fields.seq_num {
                tlv::write_nni(out, types::SIGNATURE_SEQ_NUM, seq_num);
            }
        });
        let signature = sign(&[self.name.value(), &tail]);
        tlv::write_tlv(&mut tail, types::INTEREST_SIGNATURE_VALUE, &signature);
        self.assemble(&tail)
    }

    fn assemble(&self, tail: &[u8]) -> Vec<u8> {
        let mut name = self.name.clone();
        if !tail.is_empty() {
            let value = sha256(&[tail]);
            name.push(crate::Component { type_number: types::PARAMETERS_SHA256_DIGEST, value: &value });
        }
        let mut out = Vec::with_capacity(name.value().len() + tail.len() + 48);
        tlv::write_nested(&mut out, types::INTEREST, |out| {
            name.as_name().write_tlv(out);
            if self.can_be_prefix {
                tlv::write_tlv(out, types::CAN_BE_PREFIX, &[]);
            }
            if self.must_be_fresh {
                tlv::write_tlv(out, types::MUST_BE_FRESH, &[]);
            }
            if !self.forwarding_hint.is_empty() {
                tlv::write_nested(out, types::FORWARDING_HINT, |out| {
                    self.forwarding_hint.iter().for_each(|name| name.as_name().write_tlv(out));
                });
            }
            if let Some(nonce) = self.nonce {
                tlv::write_tlv(out, types::NONCE, &nonce.0);
            }
            if let Some(lifetime_ms) = self.lifetime_ms.filter(|&ms| ms != DEFAULT_LIFETIME_MS) {
                tlv::write_nni(out, types::INTEREST_LIFETIME, lifetime_ms);
            }
            if let Some(hop_limit) = self.hop_limit {
                tlv::write_tlv(out, types::HOP_LIMIT, &[hop_limit]);
            }
            out.extend_from_slice(tail);
        });
        out
    }
}

/// Appends to `out` a copy of `interest` with `nonce` added (§4, "a forwarder adds a random one"). A nonce that the
/// Interest already has is replaced.
pub fn write_with_nonce(interest: &Interest<'_>, nonce: Nonce, out: &mut Vec<u8>) {
    if let Some(at) = interest.nonce_offset() {
        let start = out.len();
        out.extend_from_slice(interest.wire);
        out[start + at..start + at + 4].copy_from_slice(&nonce.0);
        return;
    }
    // The nonce follows Name, CanBePrefix, MustBeFresh and ForwardingHint. Ignored elements may be between these, so it
    // goes after the last of them.
    let value = value_of(interest.wire);
    let mut reader = Reader::new(value);
    let mut at = 0;
    while let Some(element) = reader.next_element().ok().flatten() {
        let comes_before = matches!(
            element.type_number,
            types::NAME | types::CAN_BE_PREFIX | types::MUST_BE_FRESH | types::FORWARDING_HINT
        );
        if comes_before {
            at = reader.offset();
        }
    }
    tlv::write_nested(out, types::INTEREST, |out| {
        out.extend_from_slice(&value[..at]);
        tlv::write_tlv(out, types::NONCE, &nonce.0);
        out.extend_from_slice(&value[at..]);
    });
}

/// Appends to `out` a copy of `interest` without its ForwardingHint (forwarding §1, step 6).
pub fn write_without_forwarding_hint(interest: &Interest<'_>, out: &mut Vec<u8>) {
    tlv::write_nested(out, types::INTEREST, |out| {
        let mut reader = Reader::new(value_of(interest.wire));
        while let Some(element) = reader.next_element().ok().flatten() {
            if element.type_number != types::FORWARDING_HINT {
                out.extend_from_slice(element.wire);
            }
        }
    });
}

fn value_of(wire: &[u8]) -> &[u8] {
    tlv::read_element(wire).map_or(&[], |outer| outer.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fuzzer found this: the nonce went before an ignored element (type 40) that preceded MustBeFresh, and the
    /// packet that we forwarded was out of order.
    #[test]
    fn nonce_goes_behind_must_be_fresh_when_an_ignored_element_stands_before_it() {
        let wire = [5, 9, 7, 3, 8, 1, b'A', 40, 0, 18, 0];
        let mut with_nonce = Vec::new();
        write_with_nonce(&Interest::parse(&wire).unwrap(), Nonce([1, 2, 3, 4]), &mut with_nonce);
        assert_eq!(with_nonce, [5, 15, 7, 3, 8, 1, b'A', 40, 0, 18, 0, 10, 4, 1, 2, 3, 4]);
    }

    #[test]
    fn nonce_is_added_where_the_grammar_wants_it() {
        let name: NameBuf = "/A/B".parse().unwrap();
        let hint: Vec<NameBuf> = vec!["/R".parse().unwrap()];
        let builder = InterestBuilder::new(&name)
            .must_be_fresh(true)
            .forwarding_hint(&hint)
            .lifetime_ms(10)
            .hop_limit(3)
            .application_parameters(vec![1]);
        let bare = builder.build();
        let mut out = Vec::new();
        write_with_nonce(&Interest::parse(&bare).unwrap(), Nonce([9, 8, 7, 6]), &mut out);
        assert_eq!(out, builder.clone().nonce(Nonce([9, 8, 7, 6])).build());

        let mut replaced = Vec::new();
        write_with_nonce(&Interest::parse(&out).unwrap(), Nonce([1; 4]), &mut replaced);
        assert_eq!(Interest::parse(&replaced).unwrap().nonce(), Some(Nonce([1; 4])));

        let mut hintless = Vec::new();
        write_without_forwarding_hint(&Interest::parse(&out).unwrap(), &mut hintless);
        let hintless = Interest::parse(&hintless).unwrap();
        assert!(!hintless.has_forwarding_hint() && hintless.parameters_digest_is_valid());
    }

    #[test]
    fn digest_signed_interest_verifies() {
        let name: NameBuf = "/A".parse().unwrap();
        let fields = SignedInterestFields { nonce: vec![0, 1], time_ms: Some(5), seq_num: None };
        let wire = InterestBuilder::new(&name).sign_digest(&fields);
        let interest = Interest::parse(&wire).unwrap();
        let (first, second) = interest.signed_portion().unwrap();
        assert_eq!(interest.signature_value().unwrap(), sha256(&[first, second]));
        assert!(interest.parameters_digest_is_valid());
        assert_eq!(interest.signature_info().unwrap().nonce(), Some(&[0u8, 1][..]));
    }
}
