//! `capture`: an operator starts a capture of frames or of decisions about packets, and fetches its records.
//!
//! The module is ours; NFD has no captures. Its commands follow the rules of the protocol.
//!
//! | verb | takes | answer |
//! | --- | --- | --- |
//! | `start` | FaceId, LocalUri (`dev://`) or neither (all); Count?: one frame in Count; Mtu?: bytes kept of a frame | Name |
//! | `start` | Name: decisions about packets under this prefix; Count?: one name in Count | Name |
//! | `add` | Name, FaceId | the same |
//! | `stop` | Name | the same |
//!
//! Pieces have the names `<Name>/seq=<n>`, from 0. Their Contents, joined, are the stream of
//! [`CaptureRecord`](namewire_packet::nfd::CaptureRecord)s; the last one has a FinalBlockId. The router sends a piece
//! when there are new records, and an empty one after a while without records.
//!
//! Frames and names are confidential. A capture therefore serves only the face that began it, and the router sends
//! pieces there directly, past its tables. As an ordinary answer, a piece would also satisfy a shorter Interest with
//! CanBePrefix of another application. The random number in the name only keeps others from asking for the same names.

use crate::{
    capture_plane::{CapturePlane, CaptureRefusal, Subject, WantedCapture},
    command::{CommandResult, Refusal, invalid_parameters, refusal},
    environment::Environment,
    management::Management,
    request::Request,
};
use namewire_packet::{
    MAX_PACKET_BYTES, NameBuf,
    nfd::{ControlParameters, FaceUri},
    tlv::types::SEQUENCE_NUM_COMPONENT,
};

/// `capture/start`.
pub(crate) fn start_capture(
    request: &Request<'_>,
    parameters: ControlParameters,
    environment: &mut dyn Environment,
) -> CommandResult {
    let subject = match (&parameters.name, parameters.face_id, &parameters.local_uri) {
        (None, None, None) => Subject::AllFaces,
        (None, Some(face), None) => Subject::Face(face),
        (None, None, Some(uri)) => match uri.parse() {
            Ok(uri @ FaceUri::Dev(_)) => Subject::FacesOf(uri),
            _ => return Err(invalid_parameters("LocalUri must be dev:// and the name of a network interface")),
        },
        (Some(prefix), None, None) => Subject::Decisions(prefix.clone()),
        _ => return Err(invalid_parameters("Name, FaceId and LocalUri exclude each other")),
    };
    let one_in = parameters.count.unwrap_or(1);
    if one_in == 0 {
        return Err(invalid_parameters("Count must not be 0"));
    }
    if parameters.mtu.is_some_and(|bytes| bytes == 0 || bytes > MAX_PACKET_BYTES as u64) {
        return Err(invalid_parameters(&format!("Mtu must be 1 to {MAX_PACKET_BYTES}")));
    }
    let wanted = WantedCapture { subject, one_in, snap_bytes: parameters.mtu };
    let name = plane(environment)?.start(request.now, request.incoming(), wanted).map_err(refused)?;
    Ok(ControlParameters { name: Some(name), ..parameters })
}

/// `capture/add`.
pub(crate) fn add_to_capture(
    request: &Request<'_>,
    parameters: ControlParameters,
    environment: &mut dyn Environment,
) -> CommandResult {
    let face = parameters.face_id.ok_or_else(|| invalid_parameters("FaceId is required"))?;
    plane(environment)?.add(request.incoming(), name_of(&parameters)?.as_name(), face).map_err(refused)?;
    Ok(parameters)
}

/// `capture/stop`.
pub(crate) fn stop_capture(
    request: &Request<'_>,
    parameters: ControlParameters,
    environment: &mut dyn Environment,
) -> CommandResult {
    plane(environment)?.stop(request.incoming(), name_of(&parameters)?.as_name()).map_err(refused)?;
    Ok(parameters)
}

impl Management {
    /// A request for a piece. One for a capture of another face gets no answer: it would reach the pending Interest of
    /// the face that may have the piece.
    pub(crate) fn on_piece_request(&mut self, request: &Request<'_>, environment: &mut dyn Environment) {
        let (now, incoming, name) = (request.now, request.incoming(), request.interest.name());
        let last = name.last().filter(|last| last.type_number == SEQUENCE_NUM_COMPONENT);
        let sequence = last.and_then(|last| last.as_nni());
        let is_served = sequence.is_some_and(|sequence| {
            environment.capture_plane().is_some_and(|plane| plane.fetch(now, incoming, name.parent(), sequence))
        });
        self.replies.counters.not_kept += u64::from(!is_served);
    }
}

fn plane(environment: &mut dyn Environment) -> Result<&mut dyn CapturePlane, Refusal> {
    environment.capture_plane().ok_or_else(|| refused(CaptureRefusal::Unavailable))
}

fn name_of(parameters: &ControlParameters) -> Result<&NameBuf, Refusal> {
    parameters.name.as_ref().ok_or_else(|| invalid_parameters("Name is required"))
}

fn refused(why: CaptureRefusal) -> Refusal {
    refusal(why.code(), why.to_string())
}
