//! Commands as they arrive: name, parameters and signature.
//!
//! Source: management.md §2 (two formats), §4 (texts); packet-format.md §4.2, §4.3 (signed bytes).
//!
//! [`crate::verbs`] has the fields that each verb takes.
//! [`crate::authorization`] decides whether a command may be carried out.

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

/// A field of ControlParameters, by its name in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
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

impl Field {
    /// Each field, and whether a command has it.
    pub(crate) fn presence(parameters: &ControlParameters) -> [(Self, bool); 17] {
        [
            (Self::Name, parameters.name.is_some()),
            (Self::FaceId, parameters.face_id.is_some()),
            (Self::Uri, parameters.uri.is_some()),
            (Self::LocalUri, parameters.local_uri.is_some()),
            (Self::Origin, parameters.origin.is_some()),
            (Self::Cost, parameters.cost.is_some()),
            (Self::Capacity, parameters.capacity.is_some()),
            (Self::Count, parameters.count.is_some()),
            (Self::Flags, parameters.flags.is_some()),
            (Self::Mask, parameters.mask.is_some()),
            (Self::Strategy, parameters.strategy.is_some()),
            (Self::ExpirationPeriod, parameters.expiration_period_ms.is_some()),
            (Self::FacePersistency, parameters.face_persistency.is_some()),
            (Self::BaseCongestionMarkingInterval, parameters.base_congestion_marking_interval_ns.is_some()),
            (Self::DefaultCongestionThreshold, parameters.default_congestion_threshold_bytes.is_some()),
            (Self::Mtu, parameters.mtu.is_some()),
            (Self::Tags, parameters.tags.is_some()),
        ]
    }
}

/// The answer that refuses a command. It is boxed because it is large and rare.
pub(crate) type Refusal = Box<ControlResponse>;

/// The body of the answer to a command that was carried out.
pub(crate) type CommandResult = Result<ControlParameters, Refusal>;

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
