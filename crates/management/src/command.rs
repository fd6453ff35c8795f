//! Commands as they arrive: name, parameters, signature, and which fields a verb takes.
//!
//! Source: management.md §2 (two formats), §4 (texts), §5 (fields);
//! packet-format.md §4.2, §4.3 (signed octets).
//!
//! Trust: a DigestSha256 signature is verified, and the parameters digest of every
//! signed Interest. Other signature types are taken without verification, and there
//! is no replay check, because commands reach the internal face from local faces
//! only; trust rules are not part of this module yet. An unsigned command passes
//! except to `rib`, which is NFD's behaviour with its sample configuration (§8).

use namewire_packet::{
    Interest, Name, SignatureInfo,
    digest::sha256,
    nfd::{ControlParameters, ControlResponse},
    signature::signature_type::DIGEST_SHA256,
    tlv::{self, types},
};

/// Components of `/localhost/nfd/<module>/<verb>`.
pub(crate) const COMMAND_NAME_LEN: usize = 4;

/// What a command can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    FacesCreate,
    FacesUpdate,
    FacesDestroy,
    FibAddNextHop,
    FibRemoveNextHop,
    CsConfig,
    CsErase,
    StrategyChoiceSet,
    StrategyChoiceUnset,
    RibRegister,
    RibUnregister,
}

use Field::{
    BaseCongestionMarkingInterval, Capacity, Cost, Count, DefaultCongestionThreshold, ExpirationPeriod, FaceId,
    FacePersistency, Flags, LocalUri, Mask, Mtu, Origin, Strategy, Uri,
};

/// A field of ControlParameters, by its name in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Name,
    FaceId,
    Uri,
    LocalUri,
    Origin,
    Cost,
    Capacity,
    Count,
    Flags,
    Mask,
    Strategy,
    ExpirationPeriod,
    FacePersistency,
    BaseCongestionMarkingInterval,
    DefaultCongestionThreshold,
    Mtu,
}

impl Verb {
    /// The verb of `/localhost/nfd/<module>/<verb>`.
    pub(crate) fn find(module: &[u8], verb: &[u8]) -> Option<Self> {
        Some(match (module, verb) {
            (b"faces", b"create") => Verb::FacesCreate,
            (b"faces", b"update") => Verb::FacesUpdate,
            (b"faces", b"destroy") => Verb::FacesDestroy,
            (b"fib", b"add-nexthop") => Verb::FibAddNextHop,
            (b"fib", b"remove-nexthop") => Verb::FibRemoveNextHop,
            (b"cs", b"config") => Verb::CsConfig,
            (b"cs", b"erase") => Verb::CsErase,
            (b"strategy-choice", b"set") => Verb::StrategyChoiceSet,
            (b"strategy-choice", b"unset") => Verb::StrategyChoiceUnset,
            (b"rib", b"register") => Verb::RibRegister,
            (b"rib", b"unregister") => Verb::RibUnregister,
            _ => return None,
        })
    }

    /// Required and optional fields (§5); all others are forbidden.
    const fn fields(self) -> (&'static [Field], &'static [Field]) {
        match self {
            Verb::FacesCreate => (
                &[Uri],
                &[
                    LocalUri,
                    Flags,
                    Mask,
                    FacePersistency,
                    BaseCongestionMarkingInterval,
                    DefaultCongestionThreshold,
                    Mtu,
                ],
            ),
            Verb::FacesUpdate => (
                &[],
                &[FaceId, Flags, Mask, FacePersistency, BaseCongestionMarkingInterval, DefaultCongestionThreshold, Mtu],
            ),
            Verb::FacesDestroy => (&[FaceId], &[]),
            Verb::FibAddNextHop => (&[Field::Name], &[FaceId, Cost]),
            Verb::FibRemoveNextHop => (&[Field::Name], &[FaceId]),
            Verb::CsConfig => (&[], &[Capacity, Flags, Mask]),
            Verb::CsErase => (&[Field::Name], &[Count]),
            Verb::StrategyChoiceSet => (&[Field::Name, Strategy], &[]),
            Verb::StrategyChoiceUnset => (&[Field::Name], &[]),
            Verb::RibRegister => (&[Field::Name], &[FaceId, Origin, Cost, Flags, ExpirationPeriod]),
            Verb::RibUnregister => (&[Field::Name], &[FaceId, Origin]),
        }
    }

    /// True if an unsigned command is refused.
    const fn needs_signature(self) -> bool {
        matches!(self, Verb::RibRegister | Verb::RibUnregister)
    }

    /// Checks that required fields are there, forbidden ones are not, and that Flags
    /// come with Mask where Mask exists.
    pub(crate) fn check_fields(self, parameters: &ControlParameters) -> Result<(), Refusal> {
        let (required, optional) = self.fields();
        for (field, is_present) in presence(parameters) {
            let is_required = required.contains(&field);
            if is_required && !is_present {
                return Err(invalid_parameters(&format!("{field:?} is required")));
            }
            if is_present && !is_required && !optional.contains(&field) {
                return Err(invalid_parameters(&format!("{field:?} is forbidden")));
            }
        }
        if optional.contains(&Mask) && parameters.flags.is_some() != parameters.mask.is_some() {
            return Err(invalid_parameters("Flags and Mask must come together"));
        }
        Ok(())
    }
}

fn presence(parameters: &ControlParameters) -> [(Field, bool); 16] {
    [
        (Field::Name, parameters.name.is_some()),
        (FaceId, parameters.face_id.is_some()),
        (Uri, parameters.uri.is_some()),
        (LocalUri, parameters.local_uri.is_some()),
        (Origin, parameters.origin.is_some()),
        (Cost, parameters.cost.is_some()),
        (Capacity, parameters.capacity.is_some()),
        (Count, parameters.count.is_some()),
        (Flags, parameters.flags.is_some()),
        (Mask, parameters.mask.is_some()),
        (Strategy, parameters.strategy.is_some()),
        (ExpirationPeriod, parameters.expiration_period_ms.is_some()),
        (FacePersistency, parameters.face_persistency.is_some()),
        (BaseCongestionMarkingInterval, parameters.base_congestion_marking_interval_ns.is_some()),
        (DefaultCongestionThreshold, parameters.default_congestion_threshold_bytes.is_some()),
        (Mtu, parameters.mtu.is_some()),
    ]
}

/// The answer that refuses a command; boxed because it is large and rare.
pub(crate) type Refusal = Box<ControlResponse>;

pub(crate) fn refusal(code: u64, text: impl Into<String>) -> Refusal {
    Box::new(ControlResponse::new(code, text))
}

/// 400 for parameters that a verb does not take, with the reason.
pub(crate) fn invalid_parameters(reason: &str) -> Refusal {
    refusal(400, format!("failed in validating parameters: {reason}"))
}

/// 400 for octets that are no command, with the reason.
pub(crate) fn malformed(reason: &str) -> Refusal {
    refusal(400, format!("Malformed command: {reason}"))
}

fn unauthorized(reason: &str) -> Refusal {
    refusal(403, format!("authorization rejected: {reason}"))
}

/// Reads, authorizes and checks one command Interest of `verb`.
///
/// # Errors
/// The answer that refuses it.
pub(crate) fn read_command(verb: Verb, interest: &Interest<'_>) -> Result<ControlParameters, Refusal> {
    let component = interest.name().get(COMMAND_NAME_LEN).ok_or_else(|| malformed("no ControlParameters"))?;
    if component.type_number != types::GENERIC_COMPONENT {
        return Err(malformed("no ControlParameters"));
    }
    let parameters = ControlParameters::decode(component.value).map_err(|error| malformed(&error.to_string()))?;
    match Signature::find(interest)? {
        Signature::None if verb.needs_signature() => return Err(unauthorized("the command is not signed")),
        Signature::None => {}
        Signature::InInterest(info) => verify_interest(interest, info)?,
        Signature::InName { info, value } => verify_name(interest.name(), info, value)?,
    }
    verb.check_fields(&parameters)?;
    Ok(parameters)
}

/// Where the signature stands: the two formats of §2.
enum Signature<'a> {
    None,
    InInterest(SignatureInfo<'a>),
    InName { info: SignatureInfo<'a>, value: &'a [u8] },
}

impl<'a> Signature<'a> {
    fn find(interest: &Interest<'a>) -> Result<Self, Refusal> {
        let name = interest.name();
        let last_type = name.last().map(|component| component.type_number);
        match (interest.signature_info(), name.len() - COMMAND_NAME_LEN) {
            (Some(info), 2) => Ok(Signature::InInterest(info)),
            (None, 1) => Ok(Signature::None),
            // ApplicationParameters without signature add a digest component.
            (None, 2) if last_type == Some(types::PARAMETERS_SHA256_DIGEST) => Ok(Signature::None),
            (None, 5) => Signature::in_name(name).ok_or_else(|| malformed("the signature in the name cannot be read")),
            _ => Err(malformed("unexpected name components")),
        }
    }

    /// The old format: timestamp, random, SignatureInfo and SignatureValue as the
    /// last four components.
    fn in_name(name: Name<'a>) -> Option<Self> {
        let info = tlv::read_element(name.get(name.len() - 2)?.value).ok()?;
        let value = tlv::read_element(name.get(name.len() - 1)?.value).ok()?;
        if info.type_number != types::SIGNATURE_INFO || value.type_number != types::SIGNATURE_VALUE {
            return None;
        }
        let timestamp_bytes = name.get(name.len() - 4)?.value.len();
        let info = SignatureInfo::parse_value(info.value).ok()?;
        (timestamp_bytes == 8).then_some(Signature::InName { info, value: value.value })
    }
}

fn verify_interest(interest: &Interest<'_>, info: SignatureInfo<'_>) -> Result<(), Refusal> {
    let (Some((components, parameters)), Some(value)) = (interest.signed_portion(), interest.signature_value()) else {
        return Err(malformed("the Interest's signature cannot be read"));
    };
    if !interest.parameters_digest_is_valid() {
        return Err(unauthorized("the parameters digest in the name is wrong"));
    }
    if info.signature_type() != DIGEST_SHA256 {
        return Ok(());
    }
    check_digest(&[components, parameters], value)
}

fn verify_name(name: Name<'_>, info: SignatureInfo<'_>, value: &[u8]) -> Result<(), Refusal> {
    if info.signature_type() != DIGEST_SHA256 {
        return Ok(());
    }
    check_digest(&[name.parent().value()], value)
}

fn check_digest(signed: &[&[u8]], value: &[u8]) -> Result<(), Refusal> {
    if sha256(signed) == value { Ok(()) } else { Err(unauthorized("the DigestSha256 signature is wrong")) }
}
