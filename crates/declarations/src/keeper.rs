//! The keeper: makes the declared faces, routes and strategies. When the declarations change, it makes only the
//! difference.

use crate::{
    default_strategies,
    host_names::{Addresses, Due, Names},
};
use namewire_configuration::{
    Declarations,
    settings::{FaceEntry, RouteEntry, StrategyEntry},
    text::{Origin, Prefix, StrategyName, Uri},
};
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{ControlParameters, FaceUri, route_flags},
};
use namewire_router::operator::{Operator, OperatorError};
use std::collections::{BTreeMap, BTreeSet};

/// Both ends of a face, as written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ends {
    remote: Uri,
    local: Option<Uri>,
}

impl Ends {
    pub(crate) fn of(entry: &FaceEntry) -> Self {
        Ends { remote: entry.uri.clone(), local: entry.local_uri.clone() }
    }
}

/// The key of a route.
pub(crate) type RouteKey = (Prefix, Uri, Origin);

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

/// What [`Keeper::note_lost`] has found, as remote ends of faces as declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// The faces that have closed.
    pub closed: Vec<Uri>,
    /// The faces with host names that have gone down.
    pub down: Vec<Uri>,
}

/// A face in whose place a declaration has another one now.
struct LeftFace {
    uri: Uri,
    old: FaceId,
    new: FaceId,
}

/// Keeps what is declared.
pub struct Keeper {
    pub(crate) operator: Operator,
    wanted: Declarations,
    pub(crate) faces: BTreeMap<Ends, (FaceEntry, FaceId)>,
    pub(crate) routes: BTreeMap<RouteKey, (RouteEntry, FaceId)>,
    pub(crate) strategies: BTreeMap<Prefix, StrategyName>,
    /// Where the host names of faces led when the faces were made.
    led_to: BTreeMap<Ends, FaceUri>,
    /// The faces with host names that are down.
    down: BTreeSet<Ends>,
    /// The faces to be destroyed once the routes lead to their successors.
    left: Vec<LeftFace>,
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
            down: BTreeSet::new(),
            left: Vec::new(),
            moved: Vec::new(),
            refused: BTreeSet::new(),
            has_pending: false,
        }
    }

    /// True if something that is declared is to be made again.
    pub fn has_pending(&self) -> bool {
        self.has_pending
    }

    /// True if a face with a host name is down.
    pub fn has_down(&self) -> bool {
        !self.down.is_empty()
    }

    /// True if a face has a host name, which may lead elsewhere one day.
    pub fn has_names(&self) -> bool {
        self.led_to.keys().any(|ends| self.faces.contains_key(ends))
    }

    /// The faces that were made again since the last call, because their host names led elsewhere.
    pub fn take_moved(&mut self) -> Vec<Uri> {
        std::mem::take(&mut self.moved)
    }

    /// Changes the node from what was declared before to what is declared now. Looks up host names meanwhile.
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
        let missing = Due { missing: true, ..Due::default() };
        let addresses = self.names(missing).await?.look_up().await;
        self.make(true, &addresses, &mut problems).await?;
        self.destroy_left(&mut problems).await?;
        Ok(problems)
    }

    /// The host names to be looked up for what is due; [`Keeper::retry`] takes the result.
    ///
    /// # Errors
    /// If the router has stopped.
    pub async fn names(&self, due: Due) -> Result<Names, OperatorError> {
        let mut names = Names::new(due);
        if due.missing {
            self.unmade_faces().iter().for_each(|(ends, _)| names.add(&ends.remote));
        }
        self.in_doubt(due).await?.iter().for_each(|(ends, _)| names.add(&ends.remote));
        Ok(names)
    }

    /// Tries again what is due according to [`Keeper::names`]. If the host name of a face that is down or silent has
    /// left the face's address, it makes a face to the new one, moves the routes there and then destroys the old face,
    /// so that the prefixes keep a next hop. Without a new face, the old one stays.
    ///
    /// # Errors
    /// If the router has stopped.
    pub async fn retry(&mut self, addresses: &Addresses) -> Result<Vec<Problem>, OperatorError> {
        // Asked again: a face may have come back during the look-up.
        let in_doubt = self.in_doubt(addresses.due).await?;
        let problems = self.retry_with(in_doubt, addresses).await?;
        if !self.down.is_empty() {
            let down = self.down_now().await?;
            self.down.retain(|ends| down.contains(ends));
        }
        Ok(problems)
    }

    async fn retry_with(
        &mut self,
        in_doubt: Vec<(Ends, FaceUri)>,
        addresses: &Addresses,
    ) -> Result<Vec<Problem>, OperatorError> {
        let mut problems = Vec::new();
        for (ends, current) in in_doubt {
            let made = self.faces.get(&ends).filter(|_| addresses.have_left(&ends.remote, &current));
            if let Some((entry, _)) = made.cloned() {
                self.make_face(ends, entry, addresses, &mut problems).await?;
            }
        }
        if self.has_pending && addresses.due.missing {
            self.make(false, addresses, &mut problems).await?;
        } else if !self.left.is_empty() {
            self.make_routes(false, &mut problems).await?;
        }
        self.destroy_left(&mut problems).await?;
        Ok(problems)
    }

    /// Forgets the faces that have closed, with their routes, so that [`Keeper::retry`] makes them again. Also notes
    /// which faces with host names are down. Returns what is new.
    ///
    /// # Errors
    /// If the router has stopped.
    pub async fn note_lost(&mut self) -> Result<Lost, OperatorError> {
        let before: Vec<Ends> = self.faces.keys().cloned().collect();
        self.forget_lost().await?;
        let is_gone = |ends: &Ends| !self.faces.contains_key(ends);
        let closed: Vec<Uri> = before.into_iter().filter(is_gone).map(|ends| ends.remote).collect();
        self.has_pending |= !closed.is_empty();
        let were_down = std::mem::take(&mut self.down);
        self.down = self.down_now().await?;
        let down = self.down.difference(&were_down).map(|ends| ends.remote.clone()).collect();
        Ok(Lost { closed, down })
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

    /// Destroys the faces that others have replaced. Routes of commands to them move too: for a command, the face and
    /// its successor are the same neighbour. Routing daemons hear that the face is gone and look after their own.
    async fn destroy_left(&mut self, problems: &mut Vec<Problem>) -> Result<(), OperatorError> {
        for LeftFace { uri, old, new } in std::mem::take(&mut self.left) {
            if self.faces.values().all(|(_, face)| *face != old) {
                self.move_routes(&uri, old, new, problems).await?;
            }
            self.remove_face(&uri, old, problems).await?;
            self.moved.push(uri);
        }
        Ok(())
    }

    /// Registers the routes to `old` that are not declared, and that last, as routes to `new`.
    async fn move_routes(
        &mut self,
        uri: &Uri,
        old: FaceId,
        new: FaceId,
        problems: &mut Vec<Problem>,
    ) -> Result<(), OperatorError> {
        let routes = self.operator.inventory().await?.routes;
        let to_new = routes.iter().filter(|route| route.face == new);
        let there: BTreeSet<(&NameBuf, u64)> = to_new.map(|route| (&route.prefix, route.origin)).collect();
        let to_old = routes.iter().filter(|route| route.face == old);
        for route in to_old.filter(|route| !there.contains(&(&route.prefix, route.origin))) {
            let parameters = ControlParameters {
                name: Some(route.prefix.clone()),
                face_id: Some(new),
                origin: Some(route.origin),
                cost: Some(route.cost),
                flags: Some(route.flags),
                ..ControlParameters::default()
            };
            let what = format!("route {} to {uri} is not moved to the face's new address", route.prefix);
            self.command("rib", "register", &parameters, what, problems).await?;
        }
        Ok(())
    }

    /// The faces with host names that are down.
    async fn down_now(&self) -> Result<BTreeSet<Ends>, OperatorError> {
        let down = self.in_doubt(Due { down: true, ..Due::default() }).await?;
        Ok(down.into_iter().map(|(ends, _)| ends).collect())
    }

    /// The faces with host names that may have to follow them, each with its address.
    async fn in_doubt(&self, due: Due) -> Result<Vec<(Ends, FaceUri)>, OperatorError> {
        if !(due.down || due.silent) || !self.has_names() {
            return Ok(Vec::new());
        }
        let doubtful = self.operator.doubtful_faces().await?;
        let doubtful = doubtful.iter().filter(|face| face.is_down || due.silent);
        let doubtful: BTreeSet<FaceId> = doubtful.map(|face| face.face).collect();
        let is_doubtful = |ends: &Ends| self.faces.get(ends).is_some_and(|(_, face)| doubtful.contains(face));
        let in_doubt = self.led_to.iter().filter(|(ends, _)| is_doubtful(ends));
        Ok(in_doubt.map(|(ends, address)| (ends.clone(), address.clone())).collect())
    }

    /// The faces that are not made as they should be.
    fn unmade_faces(&self) -> Vec<(Ends, FaceEntry)> {
        let is_unmade = |(ends, entry): &(Ends, FaceEntry)| self.faces.get(ends).is_none_or(|(made, _)| made != entry);
        faces_by_ends(&self.wanted).into_iter().filter(is_unmade).collect()
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
    async fn make(
        &mut self,
        all: bool,
        addresses: &Addresses,
        problems: &mut Vec<Problem>,
    ) -> Result<(), OperatorError> {
        self.has_pending = false;
        for (ends, entry) in self.unmade_faces() {
            self.make_face(ends, entry, addresses, problems).await?;
        }
        self.make_routes(all, problems).await?;
        self.set_strategies(all, problems).await?;
        self.has_pending |= problems.iter().any(|problem| problem.is_postponed);
        Ok(())
    }

    async fn make_routes(&mut self, all: bool, problems: &mut Vec<Problem>) -> Result<(), OperatorError> {
        let before = problems.len();
        for route in self.wanted.routes.clone() {
            // The remote end alone decides, as with every route: a face with a local end of its own will do.
            let face = self.faces.iter().find(|(ends, _)| ends.remote == route.face).map(|(_, (_, face))| *face);
            let Some(face) = face else { continue }; // its face is among the problems
            let is_made = self.routes.get(&route_key(&route)).is_some_and(|made| *made == (route.clone(), face));
            if all || !is_made {
                self.make_route(route, face, problems).await?;
            }
        }
        self.has_pending |= problems[before..].iter().any(|problem| problem.is_postponed);
        Ok(())
    }

    async fn set_strategies(&mut self, all: bool, problems: &mut Vec<Problem>) -> Result<(), OperatorError> {
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
        Ok(())
    }

    /// Makes a face. If the entry had another one, that is destroyed later ([`Keeper::destroy_left`]).
    async fn make_face(
        &mut self,
        ends: Ends,
        entry: FaceEntry,
        addresses: &Addresses,
        problems: &mut Vec<Problem>,
    ) -> Result<(), OperatorError> {
        let what = format!("face {} is not made", ends.remote);
        if self.refused.contains(&what) {
            return Ok(());
        }
        let current = self.led_to.get(&ends).filter(|_| self.faces.contains_key(&ends));
        let uri = match addresses.canonical(&entry.uri, current) {
            Some(Ok(uri)) => uri,
            None => {
                self.has_pending = true; // it was lost when the look-up had begun
                return Ok(());
            }
            Some(Err(why)) => {
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
            let previous = self.faces.get(&ends).filter(|(_, made)| *made == face).map(|(previous, _)| previous);
            let parameters = entry.parameters_after(previous, self.operator.default_mtu(&entry.uri.0));
            let update = ControlParameters { face_id: Some(face), ..parameters };
            let what = format!("face {} is not changed", ends.remote);
            self.command("faces", "update", &update, what, problems).await?;
        }
        if entry.uri.0.host_to_look_up().is_some() {
            self.led_to.insert(ends.clone(), uri);
        }
        let uri = ends.remote.clone();
        if let Some((_, old)) = self.faces.insert(ends, (entry, face))
            && old != face
        {
            self.left.push(LeftFace { uri, old, new: face });
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_configuration::{Settings, from_toml};
    use namewire_router::Router;

    /// A name that the system resolves without a name server.
    const NAMED: &str = "udp4://localhost:7001";
    const BEFORE: &str = "udp4://127.0.0.1:7001";

    fn named() -> Uri {
        NAMED.parse().unwrap()
    }

    fn face_uri(text: &str) -> FaceUri {
        text.parse().unwrap()
    }

    /// The routes as `prefix face-uri`, and the faces.
    async fn made(operator: &Operator) -> (Vec<String>, Vec<String>) {
        let inventory = operator.inventory().await.unwrap();
        let uri = |face: FaceId| inventory.faces.iter().find(|other| other.face == face).unwrap().remote.to_string();
        let routes = inventory.routes.iter().map(|route| format!("{} {}", route.prefix, uri(route.face))).collect();
        (routes, inventory.faces.iter().map(|face| face.remote.to_string()).collect())
    }

    /// As if the face was down or silent, and the name led there.
    async fn follow(keeper: &mut Keeper, found: Result<Vec<FaceUri>, String>) -> Vec<Problem> {
        let due = Due { silent: true, ..Due::default() };
        let in_doubt = keeper.led_to.iter().map(|(ends, current)| (ends.clone(), current.clone())).collect();
        keeper.retry_with(in_doubt, &Addresses { due, found: BTreeMap::from([(named(), found)]) }).await.unwrap()
    }

    /// A keeper with a route to the name, and a route to its face that a command made.
    async fn keeper(operator: &Operator) -> Keeper {
        let mut keeper = Keeper::new(operator.clone());
        let text = format!("[[route]]\nprefix = \"/own\"\nface = \"{NAMED}\"\ncost = 7\n");
        let problems = keeper.apply(Declarations::of(&from_toml(&text).unwrap())).await.unwrap();
        assert_eq!(problems, <[Problem; 0]>::default());
        let theirs = ControlParameters {
            name: Some("/theirs".parse().unwrap()),
            face_id: keeper.faces.values().next().map(|(_, face)| *face),
            ..ControlParameters::default()
        };
        operator.command("rib", "register", &theirs).await.unwrap();
        keeper
    }

    /// The story: the old face was destroyed also where no new one could be made, and its routes were gone. A route of
    /// a command to a face that had moved was lost.
    #[tokio::test]
    async fn a_face_follows_its_name_with_all_routes_and_not_into_nothing() {
        let router = Router::start(&Settings::listening_nowhere().into()).unwrap();
        let operator = router.operator();
        let mut keeper = keeper(&operator).await;
        let as_before = (vec![format!("/own {BEFORE}"), format!("/theirs {BEFORE}")], vec![BEFORE.to_owned()]);
        assert_eq!(made(&operator).await, as_before);
        let both = vec![face_uri("udp4://127.0.0.2:7001"), face_uri(BEFORE)];
        for stays in [Err("cannot resolve".to_owned()), Ok(Vec::new()), Ok(both)] {
            assert_eq!(follow(&mut keeper, stays).await, <[Problem; 0]>::default());
            assert_eq!(made(&operator).await, as_before);
        }

        let after = "udp4://127.0.0.2:7001";
        assert_eq!(follow(&mut keeper, Ok(vec![face_uri(after)])).await, <[Problem; 0]>::default());
        let moved = (vec![format!("/own {after}"), format!("/theirs {after}")], vec![after.to_owned()]);
        assert_eq!(made(&operator).await, moved);
        assert_eq!(keeper.take_moved(), [named()]);
        let costs: Vec<u64> = operator.inventory().await.unwrap().routes.iter().map(|route| route.cost).collect();
        assert_eq!(costs, [7, 0]);

        // Management refuses a face to nowhere.
        let problems = follow(&mut keeper, Ok(vec![face_uri("udp4://0.0.0.0:7001")])).await;
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(made(&operator).await, moved);
        assert_eq!(keeper.take_moved(), <[Uri; 0]>::default());
        router.stop();
    }

    /// A face that is lost while names are looked up waits for the next look-up.
    #[tokio::test]
    async fn what_was_not_looked_up_stays_pending() {
        let router = Router::start(&Settings::listening_nowhere().into()).unwrap();
        let operator = router.operator();
        let mut keeper = keeper(&operator).await;
        let missing = Due { missing: true, ..Due::default() };
        let addresses = keeper.names(missing).await.unwrap().look_up().await;
        let face_id = keeper.faces.values().next().map(|(_, face)| *face);
        let destroy = ControlParameters { face_id, ..ControlParameters::default() };
        operator.command("faces", "destroy", &destroy).await.unwrap();
        assert_eq!(keeper.note_lost().await.unwrap(), Lost { closed: vec![named()], down: Vec::new() });
        assert_eq!(keeper.retry(&addresses).await.unwrap(), <[Problem; 0]>::default());
        assert!(keeper.has_pending());
        let addresses = keeper.names(missing).await.unwrap().look_up().await;
        keeper.retry(&addresses).await.unwrap();
        assert!(!keeper.has_pending());
        assert_eq!(made(&operator).await, (vec![format!("/own {BEFORE}")], vec![BEFORE.to_owned()]));
        router.stop();
    }
}
