//! The keeper: makes what is declared, and when the declarations change, makes only the difference.

use super::default_strategies;
use crate::operator::{DoubtfulFace, Operator, OperatorError};
use namewire_configuration::{
    Declarations,
    settings::{FaceEntry, RouteEntry, StrategyEntry},
    text::{Origin, Prefix, StrategyName, Uri},
};
use namewire_packet::{
    FaceId,
    nfd::{ControlParameters, FaceUri, route_flags},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    time::Duration,
};

/// Longest wait for a host's addresses.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Both ends of a face, as written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ends {
    remote: Uri,
    local: Option<Uri>,
}

impl Ends {
    pub(super) fn of(entry: &FaceEntry) -> Self {
        Ends { remote: entry.uri.clone(), local: entry.local_uri.clone() }
    }
}

/// The key of a route.
pub(super) type RouteKey = (Prefix, Uri, Origin);

fn route_key(route: &RouteEntry) -> RouteKey {
    (route.prefix.clone(), route.face.clone(), route.origin)
}

/// The faces by their ends, including those that only routes name.
fn faces_by_ends(wanted: &Declarations) -> BTreeMap<Ends, FaceEntry> {
    let declared: BTreeSet<&Uri> = wanted.faces.iter().map(|entry| &entry.uri).collect();
    let only_named = wanted.routes.iter().map(|route| &route.face).filter(|uri| !declared.contains(uri));
    let named = only_named.map(|uri| FaceEntry::permanent(uri.clone()));
    named.chain(wanted.faces.iter().cloned()).map(|entry| (Ends::of(&entry), entry)).collect()
}

/// Something that could not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What failed, and why.
    pub message: String,
    /// It will be tried again.
    pub is_postponed: bool,
}

/// Keeps what is declared.
pub struct Keeper {
    operator: Operator,
    wanted: Declarations,
    pub(super) faces: BTreeMap<Ends, (FaceEntry, FaceId)>,
    pub(super) routes: BTreeMap<RouteKey, (RouteEntry, FaceId)>,
    pub(super) strategies: BTreeMap<Prefix, StrategyName>,
    /// Where the host names of faces led when the faces were made.
    led_to: BTreeMap<Ends, FaceUri>,
    /// A face with a host name is down.
    has_down: bool,
    /// The faces to be reported by [`Keeper::take_moved`].
    moved: Vec<Uri>,
    /// What management has refused since the last [`Keeper::apply`], by its name in a problem.
    refused: BTreeSet<String>,
    has_pending: bool,
}

impl Keeper {
    /// A keeper that has made nothing yet.
    pub fn new(operator: Operator) -> Self {
        Keeper {
            operator,
            wanted: Declarations::default(),
            faces: BTreeMap::new(),
            routes: BTreeMap::new(),
            strategies: BTreeMap::new(),
            led_to: BTreeMap::new(),
            has_down: false,
            moved: Vec::new(),
            refused: BTreeSet::new(),
            has_pending: false,
        }
    }

    /// True if something is to be tried again.
    pub fn has_pending(&self) -> bool {
        self.has_pending || self.has_down
    }

    /// True if a face has a host name, which may lead elsewhere one day.
    pub fn has_names(&self) -> bool {
        self.led_to.keys().any(|ends| self.faces.contains_key(ends))
    }

    /// The faces that were made again since the last call, because their host names led elsewhere.
    pub fn take_moved(&mut self) -> Vec<Uri> {
        std::mem::take(&mut self.moved)
    }

    /// Changes the node from what was declared before to what is declared now.
    ///
    /// # Errors
    /// If the router has stopped.
    pub async fn apply(&mut self, wanted: Declarations) -> Result<Vec<Problem>, OperatorError> {
        let mut problems = Vec::new();
        self.wanted = wanted;
        self.refused.clear();
        self.remove_routes(&mut problems).await?;
        self.remove_faces(&mut problems).await?;
        self.reset_strategies(&mut problems).await?;
        self.forget_lost().await?;
        self.make(true, &mut problems).await?;
        Ok(problems)
    }

    /// Tries again what could not be made. Makes faces again whose host names lead elsewhere now, if the faces are down
    /// or have long heard nothing: first the new face with the routes, so that the prefixes keep a next hop.
    ///
    /// # Errors
    /// If the router has stopped.
    pub async fn retry(&mut self) -> Result<Vec<Problem>, OperatorError> {
        let mut problems = Vec::new();
        let left = self.leave_moved().await?;
        if self.has_pending || !left.is_empty() {
            self.make(false, &mut problems).await?;
        }
        for (uri, face) in left {
            self.remove_face(&uri, face, &mut problems).await?;
            self.moved.push(uri);
        }
        self.note_down().await?;
        Ok(problems)
    }

    /// Forgets the faces that have closed, with their routes, so that [`Keeper::retry`] makes them again. Returns their
    /// remote ends as declared. Also notes the faces that are down and have host names, which [`Keeper::retry`] looks
    /// up.
    ///
    /// # Errors
    /// If the router has stopped.
    pub async fn note_lost(&mut self) -> Result<Vec<Uri>, OperatorError> {
        let before: Vec<Ends> = self.faces.keys().cloned().collect();
        self.forget_lost().await?;
        let lost: Vec<Uri> =
            before.into_iter().filter(|ends| !self.faces.contains_key(ends)).map(|ends| ends.remote).collect();
        self.has_pending |= !lost.is_empty();
        self.note_down().await?;
        Ok(lost)
    }

    /// What is declared but not made yet.
    pub fn pending(&self) -> Declarations {
        let is_missing_face = |face: &&FaceEntry| !self.faces.contains_key(&Ends::of(face));
        let is_missing_route = |route: &&RouteEntry| !self.routes.contains_key(&route_key(route));
        Declarations {
            faces: self.wanted.faces.iter().filter(is_missing_face).cloned().collect(),
            routes: self.wanted.routes.iter().filter(is_missing_route).cloned().collect(),
            ..Declarations::default()
        }
    }

    async fn remove_routes(&mut self, problems: &mut Vec<Problem>) -> Result<(), OperatorError> {
        let wanted: BTreeSet<RouteKey> = self.wanted.routes.iter().map(route_key).collect();
        let gone: Vec<RouteKey> = self.routes.keys().filter(|key| !wanted.contains(key)).cloned().collect();
        for key in gone {
            let Some((route, face)) = self.routes.remove(&key) else { continue };
            let parameters = ControlParameters {
                name: Some(route.prefix.0.clone()),
                face_id: Some(face),
                origin: Some(route.origin.0),
                ..ControlParameters::default()
            };
            let what = format!("route {} to {} is not removed", route.prefix, route.face);
            self.command("rib", "unregister", &parameters, what, problems).await?;
        }
        Ok(())
    }

    async fn remove_faces(&mut self, problems: &mut Vec<Problem>) -> Result<(), OperatorError> {
        let wanted = faces_by_ends(&self.wanted);
        let gone: Vec<Ends> = self.faces.keys().filter(|ends| !wanted.contains_key(ends)).cloned().collect();
        for ends in gone {
            let Some((_, face)) = self.faces.remove(&ends) else { continue };
            self.led_to.remove(&ends);
            self.remove_face(&ends.remote, face, problems).await?;
        }
        Ok(())
    }

    /// Destroys a face that was declared as `uri`, with the routes that still lead there.
    async fn remove_face(&mut self, uri: &Uri, face: FaceId, problems: &mut Vec<Problem>) -> Result<(), OperatorError> {
        if self.faces.values().any(|(_, other)| *other == face) {
            return Ok(()); // another spelling of it is still there
        }
        self.routes.retain(|_, (_, other)| *other != face);
        let parameters = ControlParameters { face_id: Some(face), ..ControlParameters::default() };
        let what = format!("face {uri} is not removed");
        self.command("faces", "destroy", &parameters, what, problems).await.map(|_| ())
    }

    /// Notes whether a face with a host name is down.
    async fn note_down(&mut self) -> Result<(), OperatorError> {
        self.has_down = self.has_names() && !self.in_doubt(|doubtful| doubtful.is_down).await?.is_empty();
        Ok(())
    }

    /// The faces with host names that may have to follow them, each with its address.
    async fn in_doubt(&self, which: impl Fn(&DoubtfulFace) -> bool) -> Result<Vec<(Ends, FaceUri)>, OperatorError> {
        let doubtful = self.operator.doubtful_faces().await?;
        let doubtful: BTreeSet<FaceId> = doubtful.iter().filter(|face| which(face)).map(|face| face.face).collect();
        let is_doubtful = |ends: &Ends| self.faces.get(ends).is_some_and(|(_, face)| doubtful.contains(face));
        let in_doubt = self.led_to.iter().filter(|(ends, _)| is_doubtful(ends));
        Ok(in_doubt.map(|(ends, address)| (ends.clone(), address.clone())).collect())
    }

    /// Looks up the host names of faces in doubt. Forgets those that lead elsewhere now, and returns them. While a name
    /// cannot be resolved, or still has the face's address among others, the face stays.
    async fn leave_moved(&mut self) -> Result<Vec<(Uri, FaceId)>, OperatorError> {
        let mut left = Vec::new();
        if !self.has_names() {
            return Ok(left);
        }
        for (ends, address) in self.in_doubt(|_| true).await? {
            let addresses = addresses_of(&ends.remote.0).await.unwrap_or_default();
            let is_moved = !addresses.is_empty() && !addresses.contains(&address);
            if let Some((_, face)) = self.faces.get(&ends).cloned().filter(|_| is_moved) {
                self.faces.remove(&ends);
                left.push((ends.remote, face));
            }
        }
        Ok(left)
    }

    async fn reset_strategies(&mut self, problems: &mut Vec<Problem>) -> Result<(), OperatorError> {
        let wanted: BTreeSet<&Prefix> = self.wanted.strategies.iter().map(|entry| &entry.prefix).collect();
        let gone: Vec<Prefix> = self.strategies.keys().filter(|prefix| !wanted.contains(prefix)).cloned().collect();
        for prefix in gone {
            self.strategies.remove(&prefix);
            let strategy = default_strategies().remove(&prefix.0);
            let verb = if strategy.is_some() { "set" } else { "unset" };
            let what = format!("strategy of {prefix} is not reset");
            let parameters = ControlParameters { name: Some(prefix.0), strategy, ..ControlParameters::default() };
            self.command("strategy-choice", verb, &parameters, what, problems).await?;
        }
        Ok(())
    }

    /// Forgets the faces that are gone, because they failed or a command destroyed them.
    async fn forget_lost(&mut self) -> Result<(), OperatorError> {
        let faces: BTreeSet<FaceId> = self.faces.values().map(|(_, face)| *face).collect();
        for face in faces {
            // The answer to an update that changes nothing tells whether the face exists.
            let parameters = ControlParameters { face_id: Some(face), ..ControlParameters::default() };
            match self.operator.command("faces", "update", &parameters).await {
                Err(OperatorError::Refused(response)) if response.code == 404 => {
                    self.faces.retain(|_, (_, other)| *other != face);
                    self.routes.retain(|_, (_, other)| *other != face);
                }
                Err(error @ OperatorError::Stopped) => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Makes what is missing or different. With `all`, it also makes the routes and strategies that are not known to be
    /// missing, because another command may have removed them.
    async fn make(&mut self, all: bool, problems: &mut Vec<Problem>) -> Result<(), OperatorError> {
        for (ends, entry) in faces_by_ends(&self.wanted) {
            if self.faces.get(&ends).is_none_or(|(made, _)| *made != entry) {
                self.make_face(ends, entry, problems).await?;
            }
        }
        for route in self.wanted.routes.clone() {
            // The remote end alone decides, as with every route: a face with a local end of its own will do.
            let face = self.faces.iter().find(|(ends, _)| ends.remote == route.face).map(|(_, (_, face))| *face);
            let Some(face) = face else { continue }; // its face is among the problems
            let is_made = self.routes.get(&route_key(&route)).is_some_and(|made| *made == (route.clone(), face));
            if all || !is_made {
                self.make_route(route, face, problems).await?;
            }
        }
        for StrategyEntry { prefix, strategy } in self.wanted.strategies.clone() {
            if !all && self.strategies.get(&prefix) == Some(&strategy) {
                continue;
            }
            let what = format!("strategy {strategy} for {prefix} is not set");
            let parameters = ControlParameters {
                name: Some(prefix.0.clone()),
                strategy: Some(strategy.0.clone()),
                ..ControlParameters::default()
            };
            if self.command("strategy-choice", "set", &parameters, what, problems).await?.is_some() {
                self.strategies.insert(prefix, strategy);
            }
        }
        for prefix in self.wanted.unset.iter().filter(|_| all).cloned().collect::<Vec<_>>() {
            let what = format!("strategy of {prefix} is not unset");
            let parameters = ControlParameters { name: Some(prefix.0), ..ControlParameters::default() };
            self.command("strategy-choice", "unset", &parameters, what, problems).await?;
        }
        self.has_pending = problems.iter().any(|problem| problem.is_postponed);
        Ok(())
    }

    async fn make_face(
        &mut self,
        ends: Ends,
        entry: FaceEntry,
        problems: &mut Vec<Problem>,
    ) -> Result<(), OperatorError> {
        let what = format!("face {} is not made", ends.remote);
        if self.refused.contains(&what) {
            return Ok(());
        }
        let uri = match canonical(&entry.uri.0).await {
            Ok(uri) => uri,
            Err(why) => {
                problems.push(Problem { message: format!("{what}: {why}"), is_postponed: true });
                return Ok(());
            }
        };
        let local_uri = entry.local_uri.as_ref().map(Uri::to_string);
        let create = ControlParameters { uri: Some(uri.to_string()), local_uri, ..entry.parameters() };
        let (face, exists) = match self.operator.command("faces", "create", &create).await {
            Ok(body) => (body.face_id, false),
            Err(OperatorError::Refused(response)) if response.code == 409 && response.body.is_some() => {
                (response.body.and_then(|body| body.face_id), true)
            }
            Err(error) => return self.fail(what, error, problems),
        };
        let Some(face) = face else { return self.fail(what, OperatorError::NoAnswer, problems) };
        if exists {
            // The face was made by another command, or by us with other properties.
            let previous = self.faces.get(&ends).map(|(previous, _)| previous);
            let update = ControlParameters { face_id: Some(face), ..entry.parameters_after(previous) };
            let what = format!("face {} is not changed", ends.remote);
            self.command("faces", "update", &update, what, problems).await?;
        }
        if host_of(&entry.uri.0).is_some() {
            self.led_to.insert(ends.clone(), uri);
        }
        self.faces.insert(ends, (entry, face));
        Ok(())
    }

    async fn make_route(
        &mut self,
        route: RouteEntry,
        face: FaceId,
        problems: &mut Vec<Problem>,
    ) -> Result<(), OperatorError> {
        let flag = |is_on: bool, bit: u64| if is_on { bit } else { 0 };
        let parameters = ControlParameters {
            name: Some(route.prefix.0.clone()),
            face_id: Some(face),
            origin: Some(route.origin.0),
            cost: Some(route.cost),
            flags: Some(flag(route.inherit, route_flags::CHILD_INHERIT) | flag(route.capture, route_flags::CAPTURE)),
            ..ControlParameters::default()
        };
        let what = format!("route {} to {} is not made", route.prefix, route.face);
        if self.command("rib", "register", &parameters, what, problems).await?.is_some() {
            self.routes.insert(route_key(&route), (route, face));
        }
        Ok(())
    }

    /// Carries out a command unless management refused it before; `what` says what its failure means.
    async fn command(
        &mut self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
        what: String,
        problems: &mut Vec<Problem>,
    ) -> Result<Option<ControlParameters>, OperatorError> {
        if self.refused.contains(&what) {
            return Ok(None);
        }
        match self.operator.command(module, verb, parameters).await {
            Ok(body) => Ok(Some(body)),
            Err(error) => self.fail(what, error, problems).map(|()| None),
        }
    }

    fn fail(&mut self, what: String, error: OperatorError, problems: &mut Vec<Problem>) -> Result<(), OperatorError> {
        let is_postponed = match &error {
            OperatorError::Stopped => return Err(error),
            OperatorError::NoAnswer => true,
            // The cause (no connection, no room) may pass.
            OperatorError::Refused(response) => response.code >= 500,
        };
        problems.push(Problem { message: format!("{what}: {error}"), is_postponed });
        if !is_postponed {
            self.refused.insert(what);
        }
        Ok(())
    }
}

/// The FaceUri that `faces/create` takes and that forwarders list. Looks up a host name.
///
/// # Errors
/// In words: the host name has no address, or none of the family that the scheme demands.
pub async fn canonical(uri: &FaceUri) -> Result<FaceUri, String> {
    let Some(host) = host_of(uri) else {
        // Without a canonical form, it is not ours to resolve; management will refuse it and say why.
        return Ok(uri.canonize().unwrap_or_else(|| uri.clone()));
    };
    let addresses = addresses_of(uri).await?;
    let first = addresses.into_iter().next();
    first.ok_or_else(|| format!("{host} has no address of the wanted family"))
}

/// The host name in a FaceUri, if it has one that is to be looked up.
fn host_of(uri: &FaceUri) -> Option<&str> {
    let FaceUri::NonCanonical(named) = uri else { return None };
    let has_addresses = ["udp", "udp4", "udp6", "tcp", "tcp4", "tcp6"].contains(&named.scheme.as_str());
    let host_without_interface = named.host.split('%').next();
    let is_address = host_without_interface.is_some_and(|host| host.parse::<IpAddr>().is_ok());
    (has_addresses && !is_address && uri.canonize().is_none()).then_some(&named.host)
}

/// The canonical FaceUris of all addresses that a host name has now.
async fn addresses_of(uri: &FaceUri) -> Result<Vec<FaceUri>, String> {
    let (FaceUri::NonCanonical(named), Some(host)) = (uri, host_of(uri)) else { return Ok(vec![uri.clone()]) };
    let look_up = tokio::net::lookup_host((host, 0));
    let addresses = match tokio::time::timeout(RESOLVE_TIMEOUT, look_up).await {
        Ok(addresses) => addresses.map_err(|error| format!("cannot resolve {host}: {error}"))?,
        Err(_) => return Err(format!("cannot resolve {host}: no answer")),
    };
    Ok(addresses.filter_map(|address| named.canonize_with(address.ip())).collect())
}
