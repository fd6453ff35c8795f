//! The steps by which a host joins a network, and stays in it: a face, routes, and the registration of its prefix.
//!
//! Each may be done again at any time, and changes nothing that is as it should be.

use super::list::Network;
use namewire_client::{Client, ControlError, DatasetError, ExpressError, InterestBuilder, RouteOptions};
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{ControlParameters, FacePersistency, FaceStatus, RibEntry, origin, route_flags},
};
use std::time::Duration;

/// How long the network's router keeps the prefix of a host that is silent.
pub const REGISTERED_FOR: Duration = Duration::from_secs(300);
/// Cost of the routes to the network's router: others have their way.
pub const ROUTE_COST: u64 = 100;

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// There is no face.
    #[error("no face to {router}: {error}")]
    Face {
        /// Its URI.
        router: String,
        /// Why.
        error: ControlError,
    },
    /// There is no route.
    #[error("no route for {prefix}: {error}")]
    Route {
        /// Its prefix.
        prefix: NameBuf,
        /// Why.
        error: ControlError,
    },
    /// The network's router does not take the prefix.
    #[error("{router} does not register {prefix}: {}", refusal(error))]
    Registration {
        /// The router.
        router: String,
        /// The prefix.
        prefix: NameBuf,
        /// Why.
        error: ControlError,
    },
}

/// A registration that failed, with what its operator may have forgotten.
fn refusal(error: &ControlError) -> String {
    match error {
        ControlError::Express(ExpressError::Nack(_)) => {
            format!("{error}; that router takes no registrations of neighbours (trust.localhop_rib)")
        }
        _ => error.to_string(),
    }
}

impl StepError {
    /// True if the network's router asks for another signature: it refuses this one, and would take one that it trusts.
    pub fn wants_certificate(&self) -> bool {
        matches!(self, StepError::Registration { error: ControlError::Refused(answer), .. } if answer.code == 403)
    }
}

/// Makes the face, or finds it. Returns its number, and whether it is new.
///
/// # Errors
/// If this router makes no such face.
pub async fn face(client: &Client, router: &str) -> Result<(FaceId, bool), StepError> {
    let parameters = ControlParameters {
        uri: Some(router.to_owned()),
        face_persistency: Some(FacePersistency::Permanent.code()),
        ..ControlParameters::default()
    };
    let failed = |error| StepError::Face { router: router.to_owned(), error };
    let (face, is_new) = match client.control("faces", "create", &parameters).await {
        Ok(response) => (response.body, true),
        Err(ControlError::Refused(response)) if response.code == 409 && response.body.is_some() => {
            (response.body, false)
        }
        Err(error) => return Err(failed(error)),
    };
    let face_id = face.and_then(|face| face.face_id).unwrap_or_default();
    Ok((face_id, is_new))
}

/// The face to a router, if there is one.
///
/// # Errors
/// If this router does not list its faces.
pub async fn find_face(client: &Client, router: &str) -> Result<Option<FaceId>, DatasetError> {
    let faces: Vec<FaceStatus> = client.list().await?;
    Ok(faces.into_iter().find(|face| face.uri == router).map(|face| face.face_id))
}

/// The routes to a face: prefix and origin.
///
/// # Errors
/// If this router does not list its routes.
pub async fn routes_to(client: &Client, face_id: FaceId) -> Result<Vec<(NameBuf, u64)>, DatasetError> {
    let entries: Vec<RibEntry> = client.list().await?;
    let of_entry = |entry: RibEntry| {
        let routes = entry.routes.into_iter().filter(move |route| route.face_id == face_id);
        routes.map(move |route| (entry.name.clone(), route.origin)).collect::<Vec<_>>()
    };
    Ok(entries.into_iter().flat_map(of_entry).collect())
}

/// Routes the prefixes of a network to its face.
///
/// # Errors
/// If this router refuses one.
pub async fn routes(client: &Client, network: &Network, face_id: FaceId) -> Result<(), StepError> {
    for prefix in &network.routes {
        // The way of a shorter prefix would be as good, and lead into another network.
        let capture = !prefix.is_empty();
        let route = RouteOptions { cost: ROUTE_COST, capture, ..route_of(face_id) };
        let registered = client.register_prefix_with(prefix, route).await;
        registered.map_err(|error| StepError::Route { prefix: prefix.clone(), error })?;
    }
    Ok(())
}

fn route_of(face_id: FaceId) -> RouteOptions {
    RouteOptions { face_id: Some(face_id), origin: origin::AUTOCONF, ..RouteOptions::default() }
}

/// Removes these routes.
pub async fn remove_routes(client: &Client, prefixes: &[NameBuf], face_id: FaceId) {
    for prefix in prefixes {
        // One that is gone is removed.
        let _ = client.unregister_prefix_with(prefix, Some(face_id), origin::AUTOCONF).await;
    }
}

/// Registers the host's prefix at the network's router, for a while. `client` signs by the host's key.
///
/// # Errors
/// If that router refuses, or does not answer.
pub async fn register(client: &Client, network: &Network, prefix: &NameBuf, face_id: FaceId) -> Result<(), StepError> {
    let parameters = ControlParameters {
        name: Some(prefix.clone()),
        origin: Some(origin::CLIENT),
        cost: Some(0),
        flags: Some(route_flags::CHILD_INHERIT),
        expiration_period_ms: Some(REGISTERED_FOR.as_millis() as u64),
        ..ControlParameters::default()
    };
    let registered = client.control_by(face_id, "rib", "register", &parameters).await;
    let (router, prefix) = (network.router.clone(), prefix.clone());
    registered.map(drop).map_err(|error| StepError::Registration { router, prefix, error })
}

/// Takes the prefix back. A router that does not answer forgets it by itself.
///
/// # Errors
/// If that router refuses, or does not answer.
pub async fn unregister(client: &Client, prefix: &NameBuf, face_id: FaceId) -> Result<(), ControlError> {
    let parameters =
        ControlParameters { name: Some(prefix.clone()), origin: Some(origin::CLIENT), ..ControlParameters::default() };
    client.control_by(face_id, "rib", "unregister", &parameters).await.map(drop)
}

/// True if a forwarder is behind the face: any answer of it, a Nack too.
pub async fn is_alive(client: &Client, face_id: FaceId) -> bool {
    let name: NameBuf = "/localhop/nfd/rib/list".parse().expect("a name in the source is well-formed");
    let question = InterestBuilder::new(name).can_be_prefix(true).must_be_fresh(true);
    matches!(client.express_by(&question, face_id).await, Ok(_) | Err(ExpressError::Nack(_)))
}

/// Removes a face that the host made to join.
pub async fn remove_face(client: &Client, face_id: FaceId) {
    let parameters = ControlParameters { face_id: Some(face_id), ..ControlParameters::default() };
    let _ = client.control("faces", "destroy", &parameters).await;
}
