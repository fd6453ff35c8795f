//! How a producer stands among the producers of one name, and its routes.
//!
//! Question: two producers serve the name `N`, each another version. Which one does a consumer find, and where do the
//! Interests for the segments of each version go?
//!
//! - Segments: each producer has a route for `N/v=<its version>` besides the one for `N`. The longest prefix wins, so
//!   the segments of each version reach their producer. The route has the flag capture: those of `N` do not apply.
//! - Discovery (`N/32=metadata`, prefix Interests): every [`LOOK_PAUSE`] each producer asks for the metadata of `N`. A
//!   router never sends an Interest back where it came from. So another producer answers, or a Nack comes at once. A
//!   producer that finds a newer version is *superseded*. Its route for `N` gets the cost [`SUPERSEDED_COST`], so
//!   routers ask the newer producer. Discovery Interests that reach it nevertheless get a Nack, never its version.
//!   When no newer version answers any more, the cost is 0 again.
//! - A version that another producer announced is not "absent": Interests for it get a Nack of the network instead of
//!   an application Nack, which a consumer would believe.
//!
//! Why a superseded producer does not name the newer version in its own metadata: with three producers, two older ones
//! would hear of the newest from each other, and would go on naming it long after it is gone.
//!
//! With any number of producers on one router this ends: a superseded one is asked last, so each look reaches one
//! that is not superseded, as long as there is one. Versions that are equal supersede each other never.
//!
//! Limits: a change takes up to [`LOOK_PAUSE`] to be seen. Producers whose routers have no routes for `N` to each other
//! do not see each other. Who answers is not checked against a trust schema: a producer that answers for `N` could
//! mislead discovery anyway.

use namewire_client::{
    Client, ControlError, DataBuf, ExpressError, InterestBuilder, InterestOptions, InterestRoutes, InterestStream,
    NameBuf, RouteOptions, ServeError,
    object_protocol::{metadata_name, name_in_metadata},
    packet::{
        content_type,
        signature::{KeyLocator, signature_type},
    },
};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
    time::{sleep, timeout},
};

/// How long the first look may take; a Nack ends it earlier.
pub const FIRST_LOOK_TIME: Duration = Duration::from_millis(300);
/// Pause between looks; up to a tenth longer, so that two producers do not ask at the same moment for long.
pub const LOOK_PAUSE: Duration = Duration::from_secs(2);
/// Cost of the route of a superseded producer: more than a network's routes cost.
pub const SUPERSEDED_COST: u64 = 1_000_000;
/// How long one of the later looks may take.
const LOOK_TIME: Duration = Duration::from_millis(1000);
/// After this many looks in a row without an answer, the other producer counts as gone.
const SILENT_LOOKS_MAX: u32 = 3;

/// A producer that answered for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherProducer {
    /// The latest version that it names, as a name.
    pub versioned_name: NameBuf,
    /// The version, if the name ends in one.
    pub version: Option<u64>,
    /// KeyLocator of its metadata, if that is a name.
    pub key: Option<NameBuf>,
}

/// What a look found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Another producer.
    Found(OtherProducer),
    /// A Nack: no one else serves the name here.
    Alone,
    /// No answer in time.
    Silence,
}

/// Asks who answers for the metadata of `object`, for at most `patience`.
pub async fn look(client: &Client, object: &NameBuf, patience: Duration) -> Look {
    let lifetime_ms = patience.as_millis() as u64;
    let interest = InterestBuilder::new(metadata_name(object)).can_be_prefix(true).must_be_fresh(true);
    match timeout(patience, client.express(&interest.lifetime_ms(lifetime_ms))).await {
        Ok(Ok(data)) => other_producer(&data).map_or(Look::Silence, Look::Found),
        Ok(Err(ExpressError::Nack(_))) => Look::Alone,
        Ok(Err(_)) | Err(_) => Look::Silence,
    }
}

fn other_producer(data: &DataBuf) -> Option<OtherProducer> {
    let view = data.data();
    let signature = view.signature_info();
    let is_damaged = signature.signature_type() == signature_type::DIGEST_SHA256 && !view.verify_digest_sha256();
    if is_damaged || view.content_type() == content_type::NACK {
        return None;
    }
    let versioned_name = name_in_metadata(view.content())?;
    let version = versioned_name.as_name().last().and_then(|last| last.version());
    let key = match signature.key_locator() {
        Some(KeyLocator::Name(name)) => Some(name.to_buf()),
        Some(KeyLocator::KeyDigest(_)) | None => None,
    };
    Some(OtherProducer { versioned_name, version, key })
}

/// What a producer learns while it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StandingChange {
    /// A producer with a newer version answers: consumers that ask for the newest version get that one.
    Superseded(OtherProducer),
    /// No newer version answers any more.
    Newest,
}

/// A name that is registered for a producer, and how it stands. See the module.
pub struct Registration {
    pub(crate) standing: Standing,
    pub(crate) interests: InterestStream,
}

impl Registration {
    /// Registers `object` and its `version`. `first` is what [`look`] found before: a producer that is superseded from
    /// the start does not take discovery away from the newer one.
    ///
    /// # Errors
    /// If the client serves this name already, or the forwarder refuses the route for `object`.
    pub async fn new(client: &Client, object: &NameBuf, version: u64, first: Look) -> Result<Self, ServeError> {
        let (standing, interests) = Standing::take(client, object, version, first).await?;
        Ok(Registration { standing, interests })
    }
}

/// What an answer depends on besides the object.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// Discovery finds a newer version at another producer.
    pub(crate) is_superseded: bool,
    /// The version of another producer.
    pub(crate) other_version: Option<u64>,
}

/// A producer among those of its name. It looks for the others until it is dropped.
pub(crate) struct Standing {
    object: NameBuf,
    version: u64,
    other: Option<OtherProducer>,
    silent_looks: u32,
    is_demoted: bool,
    routes: InterestRoutes,
    looks: mpsc::Receiver<Look>,
    look_now: Arc<Notify>,
    looking: JoinHandle<()>,
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

impl Standing {
    async fn take(
        client: &Client,
        object: &NameBuf,
        version: u64,
        first: Look,
    ) -> Result<(Standing, InterestStream), ServeError> {
        let other = if let Look::Found(other) = first { Some(other) } else { None };
        let is_demoted = is_newer(&other, version);
        let options = InterestOptions { route: Some(route_of_object(is_demoted)), ..InterestOptions::default() };
        let interests = client.interests_with(object, options).await?;
        let look_now = Arc::new(Notify::new());
        let (sender, looks) = mpsc::channel(1);
        let looking = tokio::spawn(keep_looking(client.clone(), object.clone(), Arc::clone(&look_now), sender));
        let standing = Standing {
            object: object.clone(),
            version,
            other,
            silent_looks: 0,
            is_demoted,
            routes: interests.routes(),
            looks,
            look_now,
            looking,
        };
        standing.add_route(version).await;
        Ok((standing, interests))
    }

    fn is_superseded(&self) -> bool {
        is_newer(&self.other, self.version)
    }

    pub(crate) fn place(&self) -> Place {
        let other_version = self.other.as_ref().and_then(|other| other.version);
        Place { is_superseded: self.is_superseded(), other_version }
    }

    /// From now on the producer's newest version is this one.
    pub(crate) async fn announce(&mut self, version: u64) {
        self.version = version;
        self.add_route(version).await;
        self.look_now.notify_one();
        self.settle_cost().await;
    }

    /// The producer serves this version no more.
    pub(crate) async fn forget(&self, version: u64) {
        let _ = self.routes.remove(&self.versioned(version)).await;
    }

    /// Waits until the standing changes. Dropping the future loses nothing.
    pub(crate) async fn change(&mut self) -> StandingChange {
        loop {
            let Some(look) = self.looks.recv().await else { std::future::pending().await };
            if let Some(change) = self.learn(look) {
                return change;
            }
        }
    }

    /// Lets the route for the object have the cost that fits the standing. Call this after [`Standing::change`].
    pub(crate) async fn settle_cost(&mut self) {
        let is_demoted = self.is_superseded();
        // A forwarder that refuses keeps the route that it has. The next change tries again.
        if is_demoted != self.is_demoted && self.routes.set(&self.object, route_of_object(is_demoted)).await.is_ok() {
            self.is_demoted = is_demoted;
        }
    }

    fn learn(&mut self, look: Look) -> Option<StandingChange> {
        let was_superseded = self.is_superseded();
        self.silent_looks = if look == Look::Silence { self.silent_looks + 1 } else { 0 };
        match look {
            Look::Found(other) => self.other = Some(other),
            Look::Silence if self.silent_looks < SILENT_LOOKS_MAX => {}
            Look::Silence | Look::Alone => self.other = None,
        }
        match (&self.other, self.is_superseded()) {
            (Some(other), true) if !was_superseded => Some(StandingChange::Superseded(other.clone())),
            (_, false) if was_superseded => Some(StandingChange::Newest),
            _ => None,
        }
    }

    fn versioned(&self, version: u64) -> NameBuf {
        let mut name = self.object.clone();
        name.push_version(version);
        name
    }

    async fn add_route(&self, version: u64) {
        let route = RouteOptions { capture: true, ..RouteOptions::default() };
        // Without this route the one of the object brings the Interests, unless there is another producer.
        let _: Result<(), ControlError> = self.routes.set(&self.versioned(version), route).await;
    }
}

fn is_newer(other: &Option<OtherProducer>, version: u64) -> bool {
    other.as_ref().and_then(|other| other.version).is_some_and(|other| other > version)
}

fn route_of_object(is_demoted: bool) -> RouteOptions {
    RouteOptions { cost: if is_demoted { SUPERSEDED_COST } else { 0 }, ..RouteOptions::default() }
}

async fn keep_looking(client: Client, object: NameBuf, look_now: Arc<Notify>, sender: mpsc::Sender<Look>) {
    // The first look after the registration finds a producer that began at the same moment.
    loop {
        if sender.send(look(&client, &object, LOOK_TIME).await).await.is_err() {
            return;
        }
        let pause = LOOK_PAUSE.mul_f64(1.0 + f64::from(fastrand::u32(..100)) / 1000.0);
        tokio::select! {
            () = sleep(pause) => {}
            () = look_now.notified() => {}
        }
    }
}
