//! The NFD management protocol, from the client's side.
//!
//! Commands are signed Interests of packet format v0.3 with SignatureNonce and SignatureTime. DigestSha256 signs them
//! unless [`Client::sign_commands_with`] has set a key. A forwarder may treat all its DigestSha256 clients as one key
//! whose times must strictly increase, so this process never uses a millisecond twice ([`next_signature_time_ms`]).
//! Datasets are fetched as segmented objects and decoded after joining, because NFD cuts entries in the middle.
//!
//! Commands and datasets have the prefix `/localhost/nfd`. If the face is not local, route commands have the prefix
//! `/localhop/nfd`: a forwarder accepts commands from such a face only under this prefix.

use crate::{
    client::{Client, fresh_nonce, next_hop_headers},
    data_buf::DataBuf,
    express_error::ExpressError,
    fetch_options::{Discovery, FetchError, FetchOptions},
    segment_fetch::SegmentFetch,
};
use namewire_packet::{
    FaceId, InterestBuilder, NameBuf, SignedInterestFields,
    nfd::{
        self, ControlParameters, ControlResponse, Dataset, DatasetEntry, NfdError, NodeState, Part, face_flags, origin,
        route_flags,
    },
};
use namewire_security::SignError;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

/// InterestLifetime of commands, in milliseconds.
const COMMAND_LIFETIME_MS: u64 = 4000;
/// Largest dataset that is fetched, in bytes: about a million routes.
pub const DATASET_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of SignatureNonce; the specification advises 8 or more.
const SIGNATURE_NONCE_BYTES: usize = 8;

/// Why a command was not carried out.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ControlError {
    /// No answer came back.
    #[error(transparent)]
    Express(#[from] ExpressError),
    /// The answer cannot be decoded.
    #[error("the forwarder's answer is malformed: {0}")]
    Malformed(NfdError),
    /// The command could not be signed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The forwarder refused.
    #[error("refused: {} {}", .0.code, printable(&.0.text))]
    Refused(Box<ControlResponse>),
}

/// What another machine says, as it may be shown in a terminal: 200 characters, none of which controls it.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}

/// Why there is no dataset.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// It could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It cannot be decoded.
    #[error("the forwarder's dataset is malformed: {0}")]
    Malformed(NfdError),
}

/// How a prefix is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteOptions {
    /// Next hop; `None` = this client's own face.
    pub face_id: Option<FaceId>,
    /// Lower is better.
    pub cost: u64,
    /// The kind of registrant, one of [`namewire_packet::nfd::origin`].
    pub origin: u64,
    /// The route also serves longer prefixes that have routes of their own.
    pub child_inherit: bool,
    /// The route hides those of shorter prefixes.
    pub capture: bool,
    /// Lifetime of the route in milliseconds; `None` = as long as its face.
    pub expiration_period_ms: Option<u64>,
}

impl Default for RouteOptions {
    fn default() -> Self {
        RouteOptions {
            face_id: None,
            cost: 0,
            origin: origin::APP,
            child_inherit: true,
            capture: false,
            expiration_period_ms: None,
        }
    }
}

/// The time in milliseconds since 1970, at least one more than at the last call.
pub fn next_signature_time_ms() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64);
    let later = |last: u64| Some(now.max(last + 1));
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later).unwrap_or_default();
    now.max(last + 1)
}

/// `/<scope>/nfd`.
fn scope_prefix(scope: &[u8]) -> NameBuf {
    let mut name = NameBuf::new();
    name.push_generic(scope).push_generic(b"nfd");
    name
}

fn read_response(data: &DataBuf) -> Result<ControlResponse, ControlError> {
    let response = ControlResponse::decode(data.data().content()).map_err(ControlError::Malformed)?;
    if response.code == 200 { Ok(response) } else { Err(ControlError::Refused(Box::new(response))) }
}

impl Client {
    /// Sends one command, for example `("rib", "register", …)`, and returns the forwarder's answer, which is a success.
    ///
    /// # Errors
    /// [`ControlError::Refused`] holds the answer if its code is not 200; otherwise if the command cannot be signed, if
    /// no answer comes, or if the answer cannot be decoded.
    pub async fn control(
        &self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> Result<ControlResponse, ControlError> {
        let command = self.command(self.management_prefix(module), module, verb, parameters)?;
        read_response(&self.express_wire(&command).await?)
    }

    /// Sends a command to the forwarder behind this face of the forwarder, under `/localhop/nfd`: for example to
    /// register a prefix of this host there. See [`Client::express_by`] for who may.
    ///
    /// # Errors
    /// As [`Client::control`].
    pub async fn control_by(
        &self,
        next_hop: FaceId,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> Result<ControlResponse, ControlError> {
        let command = self.command(scope_prefix(b"localhop"), module, verb, parameters)?;
        let headers = next_hop_headers(next_hop, command.len());
        read_response(&self.express_framed(&headers, &command).await?)
    }

    /// A signed command below this prefix.
    fn command(
        &self,
        prefix: NameBuf,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> Result<Vec<u8>, ControlError> {
        let mut name = prefix;
        name.push_generic(module.as_bytes()).push_generic(verb.as_bytes()).push_generic(&parameters.to_wire());
        let mut signature_nonce = [0; SIGNATURE_NONCE_BYTES];
        if getrandom::fill(&mut signature_nonce).is_err() {
            // It must differ between commands; it need not be secret.
            signature_nonce = fastrand::u64(..).to_ne_bytes();
        }
        let fields = SignedInterestFields {
            nonce: signature_nonce.to_vec(),
            time_ms: Some(next_signature_time_ms()),
            ..SignedInterestFields::default()
        };
        let command = InterestBuilder::new(name).nonce(fresh_nonce()).lifetime_ms(COMMAND_LIFETIME_MS);
        Ok(self.command_signer.sign_interest(&command, &fields)?)
    }

    /// Asks the forwarder to take NextHopFaceId from this client ([`Client::express_by`]), and to tell the faces that
    /// packets came from.
    ///
    /// # Errors
    /// As [`Client::control`]; forwarders refuse it to applications of other machines.
    pub async fn use_local_fields(&self) -> Result<(), ControlError> {
        let parameters = ControlParameters {
            flags: Some(face_flags::LOCAL_FIELDS),
            mask: Some(face_flags::LOCAL_FIELDS),
            ..ControlParameters::default()
        };
        self.control("faces", "update", &parameters).await.map(drop)
    }

    fn management_prefix(&self, module: &str) -> NameBuf {
        scope_prefix(if module == "rib" && !self.is_local() { b"localhop" } else { b"localhost" })
    }

    /// Asks the forwarder for a route for `prefix` to this client. [`Client::serve`] and [`Client::interests`] do so,
    /// too; without one of them the client drops the Interests.
    ///
    /// # Errors
    /// As [`Client::control`].
    pub async fn register_prefix(&self, prefix: &NameBuf) -> Result<ControlParameters, ControlError> {
        self.register_prefix_with(prefix, RouteOptions::default()).await
    }

    /// As [`Client::register_prefix`], with another cost, next hop or lifetime.
    ///
    /// When Namewire has answered, the route works: its FIB changes before the answer leaves, so it forwards every
    /// later Interest. (The exception is a full FIB, which `namewire status` counts as `router.fib-…`.) NFD answers
    /// before its FIB changes: there the first Interest may come too early, and gets a Nack (`NoRoute`) or follows the
    /// route of a shorter prefix. A consumer that must work with both tries again after a Nack.
    ///
    /// # Errors
    /// As [`Client::control`].
    pub async fn register_prefix_with(
        &self,
        prefix: &NameBuf,
        options: RouteOptions,
    ) -> Result<ControlParameters, ControlError> {
        let flag = |on: bool, bit: u64| if on { bit } else { 0 };
        let parameters = ControlParameters {
            name: Some(prefix.clone()),
            face_id: options.face_id,
            origin: Some(options.origin),
            cost: Some(options.cost),
            flags: Some(
                flag(options.child_inherit, route_flags::CHILD_INHERIT) | flag(options.capture, route_flags::CAPTURE),
            ),
            expiration_period_ms: options.expiration_period_ms,
            ..ControlParameters::default()
        };
        Ok(self.control("rib", "register", &parameters).await?.body.unwrap_or(parameters))
    }

    /// Removes the route for `prefix` to this client. The forwarder reports success also if there was none.
    ///
    /// # Errors
    /// As [`Client::control`].
    pub async fn unregister_prefix(&self, prefix: &NameBuf) -> Result<ControlParameters, ControlError> {
        self.unregister_prefix_with(prefix, None, origin::APP).await
    }

    /// As [`Client::unregister_prefix`], of another face or origin.
    ///
    /// # Errors
    /// As [`Client::control`].
    pub async fn unregister_prefix_with(
        &self,
        prefix: &NameBuf,
        face_id: Option<FaceId>,
        origin: u64,
    ) -> Result<ControlParameters, ControlError> {
        let parameters = ControlParameters {
            name: Some(prefix.clone()),
            face_id,
            origin: Some(origin),
            ..ControlParameters::default()
        };
        Ok(self.control("rib", "unregister", &parameters).await?.body.unwrap_or(parameters))
    }

    /// Fetches a dataset, for example `/localhost/nfd/faces/list`: the Contents of all
    /// segments of its latest version, joined.
    ///
    /// # Errors
    /// If a segment cannot be fetched, or if the dataset exceeds [`DATASET_BYTES_MAX`].
    pub async fn dataset(&self, name: &NameBuf) -> Result<Vec<u8>, FetchError> {
        let options = FetchOptions {
            discovery: Discovery::FirstSegment,
            size_bytes_max: DATASET_BYTES_MAX,
            // Signed with the forwarder's key, whichever it is; clients do not check it.
            verify_digests: false,
            ..FetchOptions::default()
        };
        let mut content = Vec::new();
        SegmentFetch::new(self, name.clone(), options).run(&mut content, |_| ()).await?;
        Ok(content)
    }

    /// Fetches and decodes a list dataset of `/localhost/nfd`, for example
    /// `status_list::<FaceStatus>("faces", "list")`.
    ///
    /// # Errors
    /// If it cannot be fetched or decoded.
    pub async fn status_list<T: DatasetEntry>(&self, module: &str, list: &str) -> Result<Vec<T>, DatasetError> {
        let content = self.dataset(&under_nfd(&format!("{module}/{list}"))).await?;
        nfd::decode_dataset(&content).map_err(DatasetError::Malformed)
    }

    /// Fetches the dataset that lists such entries: `list::<FaceStatus>()`.
    ///
    /// # Errors
    /// If it cannot be fetched or decoded.
    pub async fn list<T: Dataset>(&self) -> Result<Vec<T>, DatasetError> {
        T::decode_all(&self.dataset(&under_nfd(T::NAME)).await?).map_err(DatasetError::Malformed)
    }

    /// Fetches the status of the forwarder in numbers, and these parts of what it says of itself. Parts that another
    /// forwarder does not have, or that cannot be fetched although only we have them, stay empty.
    ///
    /// # Errors
    /// If a part that every forwarder has cannot be fetched or decoded.
    pub async fn state(&self, parts: &[Part]) -> Result<NodeState, DatasetError> {
        let mut state = NodeState { general: Some(self.forwarder_status().await?), ..NodeState::default() };
        let is_namewire = state.is_of_namewire();
        for &part in parts.iter().filter(|part| is_namewire || !part.is_ours()) {
            match self.dataset(&under_nfd(part.name())).await {
                Ok(content) => state.decode(part, &content).map_err(DatasetError::Malformed)?,
                Err(_) if part.is_ours() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(state)
    }

    /// Fetches the general status of the forwarder.
    ///
    /// # Errors
    /// If it cannot be fetched or decoded.
    pub async fn forwarder_status(&self) -> Result<nfd::ForwarderStatus, DatasetError> {
        let content = self.dataset(&under_nfd(nfd::ForwarderStatus::NAME)).await?;
        nfd::ForwarderStatus::decode(&content).map_err(DatasetError::Malformed)
    }
}

/// `/localhost/nfd/<dataset>`; the dataset is `module/name`.
fn under_nfd(dataset: &str) -> NameBuf {
    let mut name = NameBuf::new();
    name.push_generic(b"localhost").push_generic(b"nfd");
    for component in dataset.split('/') {
        name.push_generic(component.as_bytes());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_times_strictly_increase() {
        let mut last = 0;
        for _ in 0..1000 {
            let time = next_signature_time_ms();
            assert!(time > last);
            last = time;
        }
    }
}
