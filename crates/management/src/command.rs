//! Commands as they arrive: name, parameters, signature, and the fields that each verb takes.
//!
//! Source: management.md §2 (two formats), §4 (texts), §5 (fields);
//! packet-format.md §4.2, §4.3 (signed bytes).
//!
//! [`crate::authorization`] decides whether a command may be carried out.

use crate::authorization::Module;
use namewire_packet::{
    Interest,
    nfd::{ControlParameters, ControlResponse},
    tlv::types,
};
use namewire_security::trust::SignedPacket;

/// Components of `/localhost/nfd/<module>/<verb>`.
pub(crate) const COMMAND_NAME_LEN: usize = 4;

/// The signature of a command. In its name, `parameters` components are between the verb and the parts of the
/// signature. `None` if it is not signed.
///
/// # Errors
/// The answer to a command whose name or signature cannot be read.
pub(crate) fn signature_of<'a>(
    interest: &Interest<'a>,
    parameters: usize,
) -> Result<Option<SignedPacket<'a>>, Refusal> {
    let name = interest.name();
    let last_type = name.last().map(|component| component.type_number);
    let extra = name.len().checked_sub(COMMAND_NAME_LEN + parameters);
    match (interest.signature_info(), extra) {
        (Some(_), Some(1)) => SignedPacket::of_interest(interest)
            .map(Some)
            .ok_or_else(|| malformed("the Interest's signature cannot be read")),
        (None, Some(0)) => Ok(None),
        // ApplicationParameters without a signature add a digest component.
        (None, Some(1)) if last_type == Some(types::PARAMETERS_SHA256_DIGEST) => Ok(None),
        (None, Some(4)) => {
            SignedPacket::in_name(name).map(Some).ok_or_else(|| malformed("the signature in the name cannot be read"))
        }
        _ => Err(malformed("unexpected name components")),
    }
}

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
    TagsAdvertise,
    TagsWithdraw,
    TagsJoin,
    CaptureStart,
    CaptureAdd,
    CaptureStop,
    LogSet,
}

use Field::{
    BaseCongestionMarkingInterval, Capacity, Cost, Count, DefaultCongestionThreshold, ExpirationPeriod, FaceId,
    FacePersistency, Flags, LocalUri, Mask, Mtu, Origin, Strategy, Tags, Uri,
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
    Tags,
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
            (b"tags", b"advertise") => Verb::TagsAdvertise,
            (b"tags", b"withdraw") => Verb::TagsWithdraw,
            (b"tags", b"join") => Verb::TagsJoin,
            (b"capture", b"start") => Verb::CaptureStart,
            (b"capture", b"add") => Verb::CaptureAdd,
            (b"capture", b"stop") => Verb::CaptureStop,
            (b"log", b"set") => Verb::LogSet,
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
            Verb::TagsAdvertise => (&[Tags, Flags], &[FaceId, ExpirationPeriod]),
            Verb::TagsWithdraw => (&[Tags], &[FaceId]),
            Verb::TagsJoin => (&[], &[FaceId]),
            Verb::CaptureStart => (&[], &[Field::Name, FaceId, LocalUri, Count, Mtu]),
            Verb::CaptureAdd => (&[Field::Name, FaceId], &[]),
            Verb::CaptureStop => (&[Field::Name], &[]),
            Verb::LogSet => (&[], &[]),
        }
    }

    /// The module that the verb belongs to.
    pub(crate) const fn module(self) -> Module {
        match self {
            Verb::FacesCreate | Verb::FacesUpdate | Verb::FacesDestroy => Module::Faces,
            Verb::FibAddNextHop | Verb::FibRemoveNextHop => Module::Fib,
            Verb::CsConfig | Verb::CsErase => Module::Cs,
            Verb::StrategyChoiceSet | Verb::StrategyChoiceUnset => Module::StrategyChoice,
            Verb::RibRegister | Verb::RibUnregister => Module::Rib,
            Verb::TagsAdvertise | Verb::TagsWithdraw | Verb::TagsJoin => Module::Tags,
            Verb::CaptureStart | Verb::CaptureAdd | Verb::CaptureStop => Module::Capture,
            Verb::LogSet => Module::Log,
        }
    }

    /// True for a verb whose FaceId 0, or none, means the face that the command came from (§5).
    pub(crate) const fn takes_self(self) -> bool {
        !matches!(self, Verb::FacesCreate | Verb::FacesDestroy | Verb::CsErase)
            && !matches!(self.module(), Module::Capture | Module::Log)
    }

    /// Checks that required fields are there and forbidden fields are not, and that Flags come with Mask in verbs that
    /// have Mask.
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

fn presence(parameters: &ControlParameters) -> [(Field, bool); 17] {
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
        (Tags, parameters.tags.is_some()),
    ]
}

/// The answer that refuses a command. It is boxed because it is large and rare.
pub(crate) type Refusal = Box<ControlResponse>;

pub(crate) fn refusal(code: u64, text: impl Into<String>) -> Refusal {
    Box::new(ControlResponse::new(code, text))
}

/// 400 for parameters that a verb does not take, with the reason.
pub(crate) fn invalid_parameters(reason: &str) -> Refusal {
    refusal(400, format!("failed in validating parameters: {reason}"))
}

/// 400 for bytes that are not a command, with the reason.
pub(crate) fn malformed(reason: &str) -> Refusal {
    refusal(400, format!("Malformed command: {reason}"))
}

/// Reads the parameters of a command Interest.
///
/// # Errors
/// The answer to a command without parameters.
pub(crate) fn read_parameters(interest: &Interest<'_>) -> Result<ControlParameters, Refusal> {
    let component = interest.name().get(COMMAND_NAME_LEN).ok_or_else(|| malformed("no ControlParameters"))?;
    if component.type_number != types::GENERIC_COMPONENT {
        return Err(malformed("no ControlParameters"));
    }
    ControlParameters::decode(component.value).map_err(|error| malformed(&error.to_string()))
}
