//! How people identify a face: by its number or by its remote URI.
//!
//! This module resolves host names and makes URIs canonical, because a forwarder does neither.

use crate::Failure;
use namewire_client::{Client, ControlError};
use namewire_configuration::text::Uri;
use namewire_packet::{
    FaceId,
    nfd::{ControlParameters, ControlResponse, FacePersistency, FaceStatus, FaceUri, face_uri::SCHEMES_OF_NEW_FACES},
};
use std::{fmt, str::FromStr, time::Duration};
use tokio::{net::lookup_host, time::timeout};

/// Longest wait for a host's addresses.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// What the end of an answer says if the other host refused a TCP connection; the words are those of the system.
const REFUSED: &str = "Connection refused";

/// The whole answer about a scheme, in NFD's words.
const UNSUPPORTED: &str = "Unsupported protocol";

/// Number or URI of a face.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FaceReference {
    Id(FaceId),
    Uri(RemoteUri),
}

/// A remote URI that is well-formed, canonical or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteUri(Uri);

impl FromStr for RemoteUri {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(RemoteUri)
    }
}

impl FromStr for FaceReference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            return text.parse().map(FaceReference::Uri);
        }
        match text.parse() {
            Ok(id) if id > 0 => Ok(FaceReference::Id(FaceId(id))),
            _ => Err("expected a face number such as 256 or a URI such as udp://host:6363".to_owned()),
        }
    }
}

impl fmt::Display for FaceReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaceReference::Id(id) => id.fmt(f),
            FaceReference::Uri(uri) => uri.0.fmt(f),
        }
    }
}

impl RemoteUri {
    /// The form that a forwarder takes and lists. Looks up a host's name.
    ///
    /// # Errors
    /// If the host has no address.
    pub async fn canonical(&self) -> Result<String, Failure> {
        let uri = &self.0.0;
        let (FaceUri::NonCanonical(named), Some(host)) = (uri, uri.host_to_look_up()) else {
            // Without a canonical form, it is not ours to resolve; the forwarder will refuse it and say why.
            return Ok(uri.canonize().as_ref().unwrap_or(uri).to_string());
        };
        let failed = |why: String| Failure::new(crate::ExitCode::Failed, why);
        let mut addresses = match timeout(RESOLVE_TIMEOUT, lookup_host((host, 0))).await {
            Ok(addresses) => addresses.map_err(|error| failed(format!("cannot resolve {host}: {error}")))?,
            Err(_) => return Err(failed(format!("cannot resolve {host}: no answer"))),
        };
        let uri = addresses.find_map(|address| named.canonize_with(address.ip()));
        let uri = uri.ok_or_else(|| failed(format!("{host} has no address of the wanted family")))?;
        Ok(uri.to_string())
    }
}

/// The face meant, if it exists.
pub(crate) async fn find(client: &Client, reference: &FaceReference) -> Result<Option<FaceStatus>, Failure> {
    let faces: Vec<FaceStatus> = client.list().await?;
    let canonical = match reference {
        FaceReference::Id(id) => return Ok(faces.into_iter().find(|face| face.face_id == *id)),
        FaceReference::Uri(uri) => uri.canonical().await?,
    };
    let mut matching = faces.into_iter().filter(|face| face.uri == canonical);
    let first = matching.next();
    match matching.next() {
        Some(_) => Err(Failure::new(
            crate::ExitCode::Failed,
            format!("several faces lead to {canonical}; use the face number from `namewire face list`"),
        )),
        None => Ok(first),
    }
}

/// The face meant; not found is an error.
pub(crate) async fn require(client: &Client, reference: &FaceReference) -> Result<FaceStatus, Failure> {
    find(client, reference).await?.ok_or_else(|| not_found(reference))
}

pub(crate) fn not_found(reference: &FaceReference) -> Failure {
    Failure::not_found(format!("no face {reference}; `namewire face list` shows those there are"))
}

/// What `faces/create` brought.
pub(crate) struct Created {
    /// Properties of the face.
    pub(crate) face: ControlParameters,
    /// False if it was there already.
    pub(crate) is_new: bool,
}

/// Asks for a face; one that exists already is fine.
pub(crate) async fn create(client: &Client, parameters: &ControlParameters) -> Result<Created, Failure> {
    match client.control("faces", "create", parameters).await {
        Ok(response) => Ok(Created { face: response.body.unwrap_or_default(), is_new: true }),
        Err(ControlError::Refused(mut response)) if response.code == 409 => match response.body.take() {
            // The answer holds the properties of the face in the way.
            Some(face) if face.face_id.is_some() => Ok(Created { face, is_new: false }),
            _ => Err(ControlError::Refused(response).into()),
        },
        Err(ControlError::Refused(response)) => Err(not_created(parameters, response)),
        Err(error) => Err(error.into()),
    }
}

/// Why there is no face: the forwarder, or the host that the face was to lead to.
fn not_created(parameters: &ControlParameters, response: Box<ControlResponse>) -> Failure {
    let uri = parameters.uri.as_deref().unwrap_or_default();
    let ControlResponse { code, text, .. } = &*response;
    let scheme = uri.split("://").next().unwrap_or_default();
    let message = match code {
        504 if text.ends_with(REFUSED) => {
            format!("{uri} refused the connection of the forwarder: no program listens at that address ({code})")
        }
        504 => format!("the forwarder cannot make a face to {uri}: {text} ({code})"),
        400 | 406 if !SCHEMES_OF_NEW_FACES.contains(&scheme) => {
            let schemes = SCHEMES_OF_NEW_FACES.join(", ");
            format!("the forwarder makes no face of scheme {scheme}; new faces have {schemes} ({code})")
        }
        406 if text == UNSUPPORTED => {
            let why = "its configuration excludes it, or it does not know the scheme";
            format!("the forwarder makes no face of scheme {scheme}: {why} ({code})")
        }
        _ => return ControlError::Refused(response).into(),
    };
    Failure::new(crate::ExitCode::Failed, message)
}

/// The face meant; a URI that no face has gets one. It is permanent, because a persistent one closes
/// with its routes as soon as its link carries nothing, and a user who adds a route by hand would have
/// to add it again.
pub(crate) async fn find_or_create(client: &Client, reference: &FaceReference) -> Result<(FaceId, bool), Failure> {
    if let Some(face) = find(client, reference).await? {
        return Ok((face.face_id, false));
    }
    let FaceReference::Uri(uri) = reference else { return Err(not_found(reference)) };
    let parameters = ControlParameters {
        uri: Some(uri.canonical().await?),
        face_persistency: Some(FacePersistency::Permanent.code()),
        ..ControlParameters::default()
    };
    let created = create(client, &parameters).await?;
    Ok((created.face.face_id.unwrap_or_default(), created.is_new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_uris() {
        assert_eq!("256".parse(), Ok(FaceReference::Id(FaceId(256))));
        assert!("udp://host".parse::<FaceReference>().is_ok());
        assert!("udp4://192.0.2.1:6363".parse::<FaceReference>().is_ok());
        for bad in ["0", "-1", "host", "udp//host", ""] {
            assert!(bad.parse::<FaceReference>().is_err(), "{bad}");
        }
    }

    /// `route add / tcp4://127.0.0.1:1` was "the forwarder refused: Connection failed: Connection refused (504)".
    #[test]
    fn a_face_that_is_not_made_is_blamed_on_the_one_that_refused_it() {
        let message = |uri: &str, code, text: &str| {
            let parameters = ControlParameters { uri: Some(uri.to_owned()), ..ControlParameters::default() };
            not_created(&parameters, Box::new(ControlResponse::new(code, text))).to_string()
        };
        let refused = message("tcp4://127.0.0.1:1", 504, "Connection failed: Connection refused");
        assert!(refused.starts_with("tcp4://127.0.0.1:1 refused the connection of the forwarder"), "{refused}");
        let late = message("tcp4://192.0.2.1:1", 504, "Connection timed out");
        assert_eq!(late, "the forwarder cannot make a face to tcp4://192.0.2.1:1: Connection timed out (504)");
        let scheme = message("unix:///a", 406, "Unsupported protocol");
        assert!(scheme.contains("no face of scheme unix; new faces have udp, tcp, ws"), "{scheme}");
        assert!(message("fd://7", 400, "Non-canonical remote URI").contains("no face of scheme fd"));
        let other = message("udp4://0.0.0.0:1", 406, "Cannot create UDP faces to an unspecified address");
        assert!(other.starts_with("the forwarder refused: Cannot create"), "{other}");
    }

    #[tokio::test]
    async fn canonical_forms() {
        let canonical = async |text: &str| text.parse::<RemoteUri>().unwrap().canonical().await.unwrap();
        assert_eq!(canonical("udp://127.0.0.1").await, "udp4://127.0.0.1:6363");
        assert_eq!(canonical("udp4://127.0.0.1:6363").await, "udp4://127.0.0.1:6363");
        assert_eq!(canonical("tcp6://[::1]").await, "tcp6://[::1]:6363");
        assert_eq!(canonical("fd://7").await, "fd://7");
        assert_eq!(canonical("ws://localhost/ndn").await, "ws://localhost:9696/ndn");
        assert_eq!(canonical("wss://localhost").await, "wss://localhost:443");
        assert_eq!(canonical("ether://08-00-27-0A-01-01").await, "ether://[08:00:27:0a:01:01]");
    }
}
