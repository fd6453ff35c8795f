//! Commands of `tags`: an application advertises sets of tags, withdraws them, and joins those who may push.
//!
//! The module is ours; NFD has no TagNet. Its commands follow the rules of the protocol: fields, codes and answers are
//! like those of `rib`. They always concern the face that they came by. An application cannot advertise for another
//! one, because packets that the other did not ask for would go there.
//!
//! | verb | takes | answer |
//! | --- | --- | --- |
//! | `advertise` | Tags; Flags: [`TagServes`]; ExpirationPeriod? | the same, with FaceId |
//! | `withdraw` | Tags | the same, with FaceId; 404 if they were not advertised |
//! | `join` | – | FaceId: the application's endpoint in locators |
//!
//! Limits: those of [`TagList`]; the tables' own, with 507.

use crate::{
    command::{CommandResult, Refusal, invalid_parameters, refusal},
    environment::Environment,
    request::Request,
    tag_plane::{TagPlane, TagPlaneRefusal},
};
use namewire_packet::{
    FaceId,
    nfd::{ControlParameters, TagServes},
    tag::TagList,
};

/// `tags/advertise`. Repeating it sets what the tags serve, and for how long, anew.
pub(crate) fn advertise_tags(
    request: &Request<'_>,
    parameters: ControlParameters,
    environment: &mut dyn Environment,
) -> CommandResult {
    let face = own_face(request.incoming(), &parameters)?;
    let tags = required_tags(&parameters)?;
    let serves = parameters.flags.and_then(TagServes::from_code);
    let serves = serves.ok_or_else(|| invalid_parameters("Flags must be 1 (pull), 2 (push) or 3 (both)"))?;
    let expires_ms = parameters.expiration_period_ms;
    let plane = tag_plane(environment)?;
    plane.advertise(request.now, face, &tags.iter().collect::<Vec<_>>(), serves, expires_ms).map_err(full)?;
    Ok(ControlParameters {
        face_id: Some(face),
        flags: Some(serves.code()),
        expiration_period_ms: expires_ms,
        tags: parameters.tags,
        ..Default::default()
    })
}

/// `tags/withdraw`.
pub(crate) fn withdraw_tags(
    request: &Request<'_>,
    parameters: ControlParameters,
    environment: &mut dyn Environment,
) -> CommandResult {
    let face = own_face(request.incoming(), &parameters)?;
    let tags = required_tags(&parameters)?;
    if !tag_plane(environment)?.withdraw(face, &tags.iter().collect::<Vec<_>>()) {
        return Err(refusal(404, format!("Face {face} has not advertised these tags")));
    }
    Ok(ControlParameters { face_id: Some(face), tags: parameters.tags, ..Default::default() })
}

/// `tags/join`.
pub(crate) fn join_tags(
    request: &Request<'_>,
    parameters: &ControlParameters,
    environment: &mut dyn Environment,
) -> CommandResult {
    let face = own_face(request.incoming(), parameters)?;
    tag_plane(environment)?.allow_push(face).map_err(full)?;
    Ok(ControlParameters { face_id: Some(face), ..Default::default() })
}

/// The tables, or 503 without them.
pub(crate) fn tag_plane(environment: &mut dyn Environment) -> Result<&mut dyn TagPlane, Refusal> {
    environment.tag_plane().ok_or_else(|| refusal(503, "TagNet is off; the setting [tagnet] trees turns it on"))
}

/// The face that the command came by, which must be an application's and the only one that it names.
fn own_face(incoming: FaceId, parameters: &ControlParameters) -> Result<FaceId, Refusal> {
    if incoming < FaceId::FIRST_DYNAMIC {
        return Err(invalid_parameters("only an application has tags, not the forwarder itself"));
    }
    match parameters.face_id {
        Some(face) if face != incoming => {
            Err(refusal(403, format!("Tags belong to the face that the command came by, {incoming}, not to {face}")))
        }
        _ => Ok(incoming),
    }
}

fn required_tags(parameters: &ControlParameters) -> Result<&TagList, Refusal> {
    let tags = parameters.tags.as_ref().filter(|tags| !tags.is_empty());
    tags.ok_or_else(|| invalid_parameters("at least one tag is required"))
}

fn full(why: TagPlaneRefusal) -> Refusal {
    refusal(507, why.to_string())
}
