//! `namewire face create`, `update` and `destroy`.

use crate::{
    ExitCode, Failure, Global,
    cs::Switch,
    face_reference::{self, FaceReference, RemoteUri},
    quantity,
};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use namewire_client::ControlError;
use namewire_packet::nfd::{ControlParameters, FacePersistency, face_flags};
use serde::Serialize;

#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// Remote URI, for example udp://host:6363
    #[arg(value_name = "URI")]
    remote: RemoteUri,
    #[command(flatten)]
    properties: Properties,
    /// Local URI, if the kind of face needs one
    #[arg(long, value_name = "URI")]
    local: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, override_usage = "namewire face update [OPTIONS] <FACE>", group(clap::ArgGroup::new("change").multiple(true).required(true).args([
    "persistency", "mtu", "reliability", "congestion_marking", "congestion_threshold", "congestion_interval",
    "local_fields",
])))]
pub(crate) struct Update {
    /// Face number or remote URI
    #[arg(value_name = "FACE")]
    face: FaceReference,
    #[command(flatten)]
    properties: Properties,
}

/// What a command can set of a face.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
struct Properties {
    /// How long the face lives: a persistent face closes when its link fails, a permanent face is down until the link
    /// works again [a new face: persistent]
    #[arg(long, value_parser = persistency_parser())]
    persistency: Option<FacePersistency>,
    /// Largest frame sent, in bytes
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(64..=8800))]
    mtu: Option<u64>,
    /// Whether lost frames are sent again (NDNLPv2 reliability)
    #[arg(long, value_name = "SWITCH", value_enum)]
    reliability: Option<Switch>,
    /// Whether packets are marked while the send queue is long
    #[arg(long, value_name = "SWITCH", value_enum)]
    congestion_marking: Option<Switch>,
    /// Length of the send queue above which packets are marked, for example 64KiB
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes)]
    congestion_threshold: Option<u64>,
    /// First interval between marks when the queue has become long; a number alone is in milliseconds
    #[arg(long, value_name = "TIME", value_parser = quantity::ms_in(1..=86_400_000))]
    congestion_interval: Option<u64>,
    /// Whether an application sees the incoming face of packets and may choose their next hop (local faces only)
    #[arg(long, value_name = "SWITCH", value_enum)]
    local_fields: Option<Switch>,
}

/// Reads the words of [`FacePersistency::LASTING`].
fn persistency_parser() -> impl TypedValueParser<Value = FacePersistency> {
    PossibleValuesParser::new(FacePersistency::LASTING.map(FacePersistency::word)).try_map(|word| word.parse())
}

impl Properties {
    fn parameters(&self) -> ControlParameters {
        let switches = [
            (self.local_fields, face_flags::LOCAL_FIELDS),
            (self.reliability, face_flags::LP_RELIABILITY),
            (self.congestion_marking, face_flags::CONGESTION_MARKING),
        ];
        let bits = |wanted: fn(Switch) -> bool| {
            let chosen = switches.iter().filter(|(switch, _)| switch.is_some_and(wanted));
            chosen.fold(0, |bits, (_, bit)| bits | bit)
        };
        let mask = bits(|_| true);
        ControlParameters {
            flags: (mask != 0).then(|| bits(|switch| switch == Switch::On)),
            mask: (mask != 0).then_some(mask),
            face_persistency: self.persistency.map(FacePersistency::code),
            base_congestion_marking_interval_ns: self.congestion_interval.map(|ms| ms * 1_000_000),
            default_congestion_threshold_bytes: self.congestion_threshold,
            mtu: self.mtu,
            ..ControlParameters::default()
        }
    }
}

/// True if a face with the properties `is` lacks some of `wanted`.
fn lacks(is: &ControlParameters, wanted: &ControlParameters) -> bool {
    let differs = |wanted: Option<u64>, is: Option<u64>| wanted.is_some() && wanted != is;
    let mask = wanted.mask.unwrap_or(0);
    is.flags.unwrap_or(0) & mask != wanted.flags.unwrap_or(0) & mask
        || differs(wanted.face_persistency, is.face_persistency)
        || differs(wanted.base_congestion_marking_interval_ns, is.base_congestion_marking_interval_ns)
        || differs(wanted.default_congestion_threshold_bytes, is.default_congestion_threshold_bytes)
        || differs(wanted.mtu, is.mtu)
}

/// What `create` and `update` print.
#[derive(Serialize)]
struct ChangedFace {
    face_id: u64,
    is_new: bool,
    remote_uri: String,
    local_uri: String,
    persistency: String,
    mtu_bytes: Option<u64>,
    flags: Vec<&'static str>,
    base_congestion_marking_interval_ns: Option<u64>,
    default_congestion_threshold_bytes: Option<u64>,
}

impl ChangedFace {
    fn new(face: &ControlParameters, is_new: bool, remote_uri: String, local_uri: String) -> Self {
        let persistency = face.face_persistency.and_then(FacePersistency::from_code);
        ChangedFace {
            face_id: face.face_id.unwrap_or_default().0,
            is_new,
            remote_uri,
            local_uri,
            persistency: persistency.map(|persistency| persistency.to_string()).unwrap_or_default(),
            mtu_bytes: face.mtu,
            flags: face_flags::words(face.flags.unwrap_or(0)),
            base_congestion_marking_interval_ns: face.base_congestion_marking_interval_ns,
            default_congestion_threshold_bytes: face.default_congestion_threshold_bytes,
        }
    }

    fn text(&self, what: &str) -> String {
        let mut text = format!("face {} {what}: {} {}", self.face_id, self.remote_uri, self.persistency);
        self.flags.iter().for_each(|flag| text += &format!(", {flag}"));
        text + "\n"
    }
}

pub(super) async fn create(global: &Global, args: Create) -> Result<(), Failure> {
    let properties = args.properties.parameters();
    let uri = args.remote.canonical().await?;
    let parameters = ControlParameters { uri: Some(uri.clone()), local_uri: args.local, ..properties.clone() };
    let client = global.connect().await?;
    let mut created = face_reference::create(&client, &parameters).await?;
    if !created.is_new && lacks(&created.face, &properties) {
        let change = ControlParameters { face_id: created.face.face_id, ..properties };
        let (uri, local_uri) = (created.face.uri.take(), created.face.local_uri.take());
        created.face = ControlParameters { uri, local_uri, ..change_face(&client, &change).await? };
    }
    let remote_uri = created.face.uri.clone().unwrap_or(uri);
    let local_uri = created.face.local_uri.clone().unwrap_or_default();
    let face = ChangedFace::new(&created.face, created.is_new, remote_uri, local_uri);
    global.output().print(&face, || face.text(if face.is_new { "created" } else { "exists already" }))?;
    Ok(())
}

pub(super) async fn update(global: &Global, args: Update) -> Result<(), Failure> {
    let client = global.connect().await?;
    let face = face_reference::require(&client, &args.face).await?;
    let change = ControlParameters { face_id: Some(face.face_id), ..args.properties.parameters() };
    let done = change_face(&client, &change).await?;
    let changed = ChangedFace::new(&done, false, face.uri, face.local_uri);
    global.output().print(&changed, || changed.text("updated"))?;
    Ok(())
}

/// Changes a face; returns its properties afterwards.
async fn change_face(
    client: &namewire_client::Client,
    change: &ControlParameters,
) -> Result<ControlParameters, Failure> {
    match client.control("faces", "update", change).await {
        Ok(response) => Ok(response.body.unwrap_or_else(|| change.clone())),
        // The answer holds the properties that the face cannot take.
        Err(ControlError::Refused(response)) if response.code == 409 => {
            let words = response.body.as_ref().map(refused_words).unwrap_or_default();
            let face = change.face_id.unwrap_or_default();
            Err(Failure::new(ExitCode::Failed, format!("face {face} cannot take {words}: {} (409)", response.text)))
        }
        Err(error) => Err(error.into()),
    }
}

fn refused_words(refused: &ControlParameters) -> String {
    let mut words = face_flags::words(refused.flags.unwrap_or(0) | refused.mask.unwrap_or(0));
    words.extend(refused.face_persistency.map(|_| "this persistency"));
    words.extend(refused.mtu.map(|_| "an MTU"));
    if words.is_empty() { "these properties".to_owned() } else { words.join(", ") }
}

#[derive(Serialize)]
struct DestroyedFace {
    face_id: u64,
    remote_uri: String,
}

pub(super) async fn destroy(global: &Global, reference: &FaceReference) -> Result<(), Failure> {
    let client = global.connect().await?;
    // The command succeeds for faces that do not exist, so look first.
    let face = face_reference::require(&client, reference).await?;
    let parameters = ControlParameters { face_id: Some(face.face_id), ..ControlParameters::default() };
    client.control("faces", "destroy", &parameters).await?;
    let destroyed = DestroyedFace { face_id: face.face_id.0, remote_uri: face.uri };
    global
        .output()
        .print(&destroyed, || format!("face {} destroyed: {}\n", destroyed.face_id, destroyed.remote_uri))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_switches_named_are_masked() {
        let flags = |properties: Properties| (properties.parameters().flags, properties.parameters().mask);
        assert_eq!(flags(Properties::default()), (None, None));
        let off = Properties { reliability: Some(Switch::Off), ..Properties::default() };
        assert_eq!(flags(off), (Some(0), Some(face_flags::LP_RELIABILITY)));
        let both = Properties { congestion_marking: Some(Switch::On), ..off };
        let mask = face_flags::CONGESTION_MARKING | face_flags::LP_RELIABILITY;
        assert_eq!(flags(both), (Some(face_flags::CONGESTION_MARKING), Some(mask)));
    }

    #[test]
    fn a_face_lacks_what_is_named_and_differs() {
        let is = ControlParameters { flags: Some(face_flags::LP_RELIABILITY), mtu: Some(1400), ..Default::default() };
        let wanted = |properties: Properties| lacks(&is, &properties.parameters());
        assert!(!wanted(Properties::default()));
        assert!(!wanted(Properties { reliability: Some(Switch::On), mtu: Some(1400), ..Properties::default() }));
        assert!(wanted(Properties { reliability: Some(Switch::Off), ..Properties::default() }));
        assert!(wanted(Properties { congestion_marking: Some(Switch::On), ..Properties::default() }));
        assert!(wanted(Properties { congestion_interval: Some(5), ..Properties::default() }));
    }
}
