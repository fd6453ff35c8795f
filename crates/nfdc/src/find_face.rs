//! Finds the faces that an argument of a command line identifies.

use crate::{
    context::{AMBIGUOUS, CANONIZATION_FAILED, Context, FACE_NOT_FOUND, FAILED, Stop, Unanswered},
    face_uri::FaceUriText,
    value::FaceReference,
};
use namewire_packet::{
    FaceId,
    nfd::{FaceQueryFilter, FaceStatus},
};

/// The canonical text of a FaceUri; `field` says which one in the message.
pub(crate) async fn canonize(uri: &FaceUriText, field: &str) -> Result<String, Stop> {
    match uri.canonize().await {
        Ok(canonical) => Ok(canonical.to_string()),
        Err(reason) => {
            let message = format!("Error during canonization of {field}'{uri}': {reason}");
            Err(Stop::new(CANONIZATION_FAILED, message))
        }
    }
}

/// The same for look-ups, which also name faces whose URIs have no canonical form.
pub(crate) async fn canonize_if_possible(uri: &FaceUriText) -> Result<String, Stop> {
    if uri.can_canonize() { canonize(uri, "").await } else { Ok(uri.to_string()) }
}

/// All faces that match; none is an error.
pub(crate) async fn query(context: &Context, filter: &FaceQueryFilter) -> Result<Vec<FaceStatus>, Stop> {
    let faces = context.query_faces(filter).await.map_err(|error| match error {
        Unanswered::Refused(refusal) => {
            Stop::new(FAILED, format!("Error {} when querying face: {}", refusal.code, refusal.text))
        }
        Unanswered::Lost(stop) => stop,
    })?;
    if faces.is_empty() { Err(Stop::new(FACE_NOT_FOUND, "Face not found")) } else { Ok(faces) }
}

/// All faces meant; none is an error.
pub(crate) async fn find(context: &Context, reference: &FaceReference) -> Result<Vec<FaceStatus>, Stop> {
    let filter = match reference {
        FaceReference::Id(id) => FaceQueryFilter { face_id: Some(FaceId(*id)), ..FaceQueryFilter::default() },
        FaceReference::Uri(uri) => {
            FaceQueryFilter { uri: Some(canonize_if_possible(uri).await?), ..FaceQueryFilter::default() }
        }
    };
    query(context, &filter).await
}

/// The one face meant.
pub(crate) async fn find_one(context: &Context, reference: &FaceReference) -> Result<FaceStatus, Stop> {
    let mut faces = find(context, reference).await?;
    if faces.len() > 1 {
        let candidate = |face: &FaceStatus| format!("{} (local={})", face.face_id, face.local_uri);
        let candidates: Vec<String> = faces.iter().map(candidate).collect();
        return Err(Stop::new(
            AMBIGUOUS,
            format!(
                "Multiple faces match specified remote FaceUri. Re-run the command with a FaceId: {}",
                candidates.join(", ")
            ),
        ));
    }
    Ok(faces.remove(0))
}
