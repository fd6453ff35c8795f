//! Context of a command: the forwarder, the two output streams and the exit code.
//!
//! A command connects only when it needs the forwarder. So it reports a bad command line even if no forwarder runs. A
//! command's output is kept until the command ends.
//!
//! Source: drop-in §5 (exit codes). Errors that `nfdc` itself detects have the codes of ndn-cxx's `Controller`.

use namewire_client::{
    Client, CloseReason, ConnectError, ControlError, DATASET_BYTES_MAX, Discovery, ExpressError, FetchError,
    FetchOptions, SegmentFetch, TransportUri,
};
use namewire_packet::{
    NackReason, NameBuf,
    nfd::{self, ControlParameters, ControlResponse, DatasetEntry, FaceQueryFilter, FaceStatus, ForwarderStatus},
};
use namewire_printing::output::write_out;
use namewire_security::Signer;
use std::io;
use tokio::sync::OnceCell;

/// Something undefined failed.
pub(crate) const FAILED: u8 = 1;
/// The command line makes no sense.
pub(crate) const USAGE: u8 = 2;
/// No such face.
pub(crate) const FACE_NOT_FOUND: u8 = 3;
/// A FaceUri has no canonical form.
pub(crate) const CANONIZATION_FAILED: u8 = 4;
/// Several faces match.
pub(crate) const AMBIGUOUS: u8 = 5;
/// No such route.
pub(crate) const ROUTE_NOT_FOUND: u8 = 6;
/// No such strategy.
pub(crate) const UNKNOWN_STRATEGY: u8 = 7;

/// Error number: the answer makes no sense.
const ERROR_SERVER: u64 = 500;
/// Error number: no answer.
const ERROR_TIMEOUT: u64 = 10060;
/// Error number: a Nack.
const ERROR_NACK: u64 = 10800;

/// InterestLifetime of dataset Interests: three attempts take the four seconds of NFD's nfdc.
const DATASET_LIFETIME_MS: u64 = 1333;
/// How often a later segment is asked for again.
const DATASET_RETRIES_MAX: u32 = 3;

/// Why a command ends early: what goes to standard error, and the exit code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Stop {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Stop { code, message: message.into() }
    }
}

/// An error number and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: u64,
    pub(crate) text: String,
    /// Properties of the face in the way (409).
    pub(crate) body: Option<Box<ControlParameters>>,
}

impl Refusal {
    fn new(code: u64, text: impl Into<String>) -> Self {
        Refusal { code, text: text.into(), body: None }
    }

    /// Ends a command that was `doing` something, for example "adding route".
    pub(crate) fn when(self, doing: &str) -> Stop {
        Stop::new(FAILED, format!("Error {} when {doing}: {}", self.code, self.text))
    }
}

/// A field that the answer to a command that was `doing` something must have.
pub(crate) fn required<T>(value: Option<T>, field: &str, doing: &str) -> Result<T, Stop> {
    let missing = || Refusal::new(ERROR_SERVER, format!("Invalid response: {field} is required but missing"));
    value.ok_or_else(|| missing().when(doing))
}

/// Why a request brought nothing.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The forwarder refuses, or does not answer.
    Refused(Refusal),
    /// There is no forwarder (any more): nothing further can work.
    Lost(Stop),
}

impl Unanswered {
    /// Ends a command that was `doing` something.
    pub(crate) fn when(self, doing: &str) -> Stop {
        match self {
            Unanswered::Refused(refusal) => refusal.when(doing),
            Unanswered::Lost(stop) => stop,
        }
    }

    fn of_express(error: &ExpressError, timeout_text: &str, nack_text: impl FnOnce(NackReason) -> String) -> Self {
        match error {
            ExpressError::Timeout(_) => Unanswered::Refused(Refusal::new(ERROR_TIMEOUT, timeout_text)),
            ExpressError::Nack(reason) => Unanswered::Refused(Refusal::new(ERROR_NACK, nack_text(*reason))),
            ExpressError::Closed(CloseReason::Remote) => {
                Unanswered::Lost(Stop::new(FAILED, "socket read error (End of file)"))
            }
            ExpressError::Closed(_) | ExpressError::Malformed(_) | ExpressError::TooLarge(_) => {
                Unanswered::Lost(Stop::new(FAILED, error.to_string()))
            }
        }
    }
}

impl From<ControlError> for Unanswered {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::Express(cause) => {
                Unanswered::of_express(&cause, "request timed out", |reason| format!("received Nack: {reason}"))
            }
            ControlError::Sign(error) => Unanswered::Lost(Stop::new(FAILED, error.to_string())),
            ControlError::Malformed(error) => {
                let text = format!("ControlResponse decoding failure: {error}");
                Unanswered::Refused(Refusal::new(ERROR_SERVER, text))
            }
            ControlError::Refused(response) => {
                let ControlResponse { code, text, body } = *response;
                Unanswered::Refused(Refusal { code, text, body: body.map(Box::new) })
            }
        }
    }
}

impl From<FetchError> for Unanswered {
    fn from(error: FetchError) -> Self {
        match &error {
            FetchError::NotFound { cause, .. } | FetchError::Connection(cause) => {
                Unanswered::of_express(cause, "Timeout exceeded", |_| "Nack Error".to_owned())
            }
            FetchError::SegmentTimeout { .. } => Unanswered::Refused(Refusal::new(ERROR_TIMEOUT, "Timeout exceeded")),
            FetchError::SegmentNack { .. } => Unanswered::Refused(Refusal::new(ERROR_NACK, "Nack Error")),
            _ => Unanswered::Refused(Refusal::new(ERROR_SERVER, error.to_string())),
        }
    }
}

/// What a command works with.
pub(crate) struct Context {
    transport: Option<TransportUri>,
    signer: Signer,
    client: OnceCell<Client>,
    /// For standard output.
    pub(crate) out: String,
    /// For standard error.
    pub(crate) err: String,
    /// Exit code so far.
    pub(crate) code: u8,
}

impl Context {
    /// `transport`: the forwarder to talk to, if not the one that the environment names.
    pub(crate) fn new(transport: Option<TransportUri>, signer: Signer) -> Self {
        Context { transport, signer, client: OnceCell::new(), out: String::new(), err: String::new(), code: 0 }
    }

    /// Notes why a command ends early.
    pub(crate) fn stop(&mut self, stop: Stop) {
        self.code = stop.code;
        self.err.push_str(&stop.message);
        self.err.push('\n');
    }

    /// Writes what was noted so far.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        eprint!("{}", std::mem::take(&mut self.err));
        write_out(std::mem::take(&mut self.out).as_bytes())
    }

    async fn client(&self) -> Result<&Client, Stop> {
        let connect = async || {
            let client = match &self.transport {
                Some(uri) => Client::connect_to(uri.clone()).await,
                None => Client::connect().await,
            };
            client.map(|client| client.sign_commands_with(self.signer.clone()))
        };
        self.client.get_or_try_init(connect).await.map_err(|error| Stop::new(FAILED, not_connected(&error)))
    }

    /// Carries out one command of the management protocol; the answer's body.
    pub(crate) async fn control(
        &self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, Unanswered> {
        let client = self.client().await.map_err(Unanswered::Lost)?;
        let response = client.control(module, verb, parameters).await?;
        response.body.ok_or_else(|| {
            Unanswered::Refused(Refusal::new(ERROR_SERVER, "ControlParameters decoding failure: there are none"))
        })
    }

    /// A dataset below `/localhost/nfd`, undecoded.
    async fn dataset(&self, path: &[&[u8]]) -> Result<Vec<u8>, Unanswered> {
        let mut name: NameBuf = NameBuf::new();
        name.push_generic(b"localhost").push_generic(b"nfd");
        for component in path {
            name.push_generic(component);
        }
        let options = FetchOptions {
            discovery: Discovery::FirstSegment,
            size_bytes_max: DATASET_BYTES_MAX,
            lifetime_ms: DATASET_LIFETIME_MS,
            retries_max: DATASET_RETRIES_MAX,
            // Signed with whatever key the forwarder has.
            verify_digests: false,
            ..FetchOptions::default()
        };
        let client = self.client().await.map_err(Unanswered::Lost)?;
        let mut content = Vec::new();
        SegmentFetch::new(client, name, options).run(&mut content, |_| ()).await?;
        Ok(content)
    }

    /// The entries of a list dataset.
    pub(crate) async fn list<T: DatasetEntry>(&self, module: &str, list: &str) -> Result<Vec<T>, Unanswered> {
        let content = self.dataset(&[module.as_bytes(), list.as_bytes()]).await?;
        nfd::decode_dataset(&content).map_err(undecodable)
    }

    /// The faces that match a filter.
    pub(crate) async fn query_faces(&self, filter: &FaceQueryFilter) -> Result<Vec<FaceStatus>, Unanswered> {
        if *filter == FaceQueryFilter::default() {
            return self.list("faces", "list").await;
        }
        let content = self.dataset(&[b"faces", b"query", &filter.to_wire()]).await?;
        nfd::decode_dataset(&content).map_err(undecodable)
    }

    /// The general status.
    pub(crate) async fn forwarder_status(&self) -> Result<ForwarderStatus, Unanswered> {
        let content = self.dataset(&[b"status", b"general"]).await?;
        ForwarderStatus::decode(&content).map_err(undecodable)
    }
}

fn undecodable(error: nfd::NfdError) -> Unanswered {
    Unanswered::Refused(Refusal::new(ERROR_SERVER, format!("Dataset decoding failure: {error}")))
}

/// There is no forwarder, in ndn-cxx's words: one line per place tried. ndn-cxx itself tries a single one.
pub fn not_connected(error: &ConnectError) -> String {
    match error {
        ConnectError::NoForwarder { tried, .. } => {
            let line = |uri: &TransportUri, error: &io::Error| {
                // An endpoint, without its scheme.
                let uri = uri.to_string();
                let endpoint = uri.split_once("://").map_or(uri.as_str(), |(_, endpoint)| endpoint);
                format!("could not connect to NDN forwarder at {endpoint} ({})", system_text(error))
            };
            let lines: Vec<String> = tried.iter().map(|(uri, error)| line(uri, error)).collect();
            lines.join("\n")
        }
        other @ ConnectError::Discovery(_) => other.to_string(),
    }
}

/// The operating system's text without its number, as Boost prints it.
pub fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_and_nacks_have_numbers() {
        let message = |error: Unanswered| error.when("doing it").message;
        let control = |cause| message(ControlError::Express(cause).into());
        assert_eq!(control(ExpressError::Timeout(4000)), "Error 10060 when doing it: request timed out");
        let nack = ExpressError::Nack(NackReason::NoRoute);
        assert_eq!(control(nack.clone()), "Error 10800 when doing it: received Nack: NoRoute");
        let fetch = |cause| message(FetchError::NotFound { name: NameBuf::new(), cause }.into());
        assert_eq!(fetch(ExpressError::Timeout(1333)), "Error 10060 when doing it: Timeout exceeded");
        assert_eq!(fetch(nack), "Error 10800 when doing it: Nack Error");
        let late = FetchError::SegmentTimeout { segment: 1, attempts: 4 };
        assert_eq!(message(late.into()), "Error 10060 when doing it: Timeout exceeded");
        assert_eq!(control(ExpressError::Closed(CloseReason::Remote)), "socket read error (End of file)");
    }

    #[test]
    fn a_missing_field_is_the_forwarders_fault() {
        let stop = required(None::<u64>, "Cost", "adding route").unwrap_err();
        assert_eq!(stop.message, "Error 500 when adding route: Invalid response: Cost is required but missing");
        assert_eq!(required(Some(7), "Cost", "adding route"), Ok(7));
    }
}
