//! `namewire face`: list, show, create and destroy faces.

use crate::{
    Failure, Global,
    face_reference::{self, FaceReference, RemoteUri},
    output::{fields, table},
    quantity,
};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use namewire_packet::nfd::{ControlParameters, FacePersistency, FaceStatus, face_flags};
use serde::Serialize;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List all faces
    List,
    /// Show one face with all its counters
    Show {
        /// Face number or remote URI
        #[arg(value_name = "FACE")]
        face: FaceReference,
    },
    /// Create a face; one that exists already takes the properties given here
    Create {
        /// Remote URI, for example udp://host:6363
        #[arg(value_name = "URI")]
        remote: RemoteUri,
        /// How long the face lives: a persistent one closes when its link is dead, a permanent one is down
        /// meanwhile [default: persistent]
        #[arg(long, value_parser = persistency_parser())]
        persistency: Option<FacePersistency>,
        /// Largest frame sent, in bytes
        #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(64..=8800))]
        mtu: Option<u64>,
        /// Local URI, where the kind of face needs one
        #[arg(long, value_name = "URI")]
        local: Option<String>,
    },
    /// Destroy a face and its routes
    Destroy {
        /// Face number or remote URI
        #[arg(value_name = "FACE")]
        face: FaceReference,
    },
}

/// Reads the words of [`FacePersistency::LASTING`].
fn persistency_parser() -> impl TypedValueParser<Value = FacePersistency> {
    PossibleValuesParser::new(FacePersistency::LASTING.map(FacePersistency::word)).try_map(|word| word.parse())
}

#[derive(Serialize)]
struct Face {
    face_id: u64,
    remote_uri: String,
    local_uri: String,
    scope: String,
    persistency: String,
    link_type: String,
    flags: Vec<&'static str>,
    mtu_bytes: Option<u64>,
    port: Option<String>,
    expires_ms: Option<u64>,
    base_congestion_marking_interval_ns: Option<u64>,
    default_congestion_threshold_bytes: Option<u64>,
    in_interests: u64,
    in_data: u64,
    in_nacks: u64,
    in_bytes: u64,
    out_interests: u64,
    out_data: u64,
    out_nacks: u64,
    out_bytes: u64,
}

impl From<&FaceStatus> for Face {
    fn from(face: &FaceStatus) -> Self {
        let counters = &face.counters;
        Face {
            face_id: face.face_id.0,
            remote_uri: face.uri.clone(),
            local_uri: face.local_uri.clone(),
            scope: face.face_scope.to_string(),
            persistency: face.face_persistency.to_string(),
            link_type: face.link_type.to_string(),
            flags: flag_words(face.flags),
            mtu_bytes: face.mtu,
            port: face.port.clone(),
            expires_ms: face.expiration_period_ms,
            base_congestion_marking_interval_ns: face.base_congestion_marking_interval_ns,
            default_congestion_threshold_bytes: face.default_congestion_threshold_bytes,
            in_interests: counters.n_in_interests,
            in_data: counters.n_in_data,
            in_nacks: counters.n_in_nacks,
            in_bytes: counters.n_in_bytes,
            out_interests: counters.n_out_interests,
            out_data: counters.n_out_data,
            out_nacks: counters.n_out_nacks,
            out_bytes: counters.n_out_bytes,
        }
    }
}

/// What `face create` prints.
#[derive(Serialize)]
struct CreatedFace {
    face_id: u64,
    is_new: bool,
    remote_uri: String,
    local_uri: String,
    persistency: String,
    mtu_bytes: Option<u64>,
}

#[derive(Serialize)]
struct DestroyedFace {
    face_id: u64,
    remote_uri: String,
}

pub(crate) async fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    match command {
        Command::List => list(global).await,
        Command::Show { face } => show(global, &face).await,
        Command::Create { remote, persistency, mtu, local } => {
            let parameters = ControlParameters {
                uri: Some(remote.canonical().await?),
                local_uri: local,
                face_persistency: persistency.map(FacePersistency::code),
                mtu,
                ..ControlParameters::default()
            };
            create(global, parameters).await
        }
        Command::Destroy { face } => destroy(global, &face).await,
    }
}

async fn list(global: &Global) -> Result<(), Failure> {
    let client = global.connect().await?;
    let faces: Vec<FaceStatus> = client.status_list("faces", "list").await?;
    let faces: Vec<Face> = faces.iter().map(Face::from).collect();
    global.output().print(&faces, || {
        let heading = ["ID", "REMOTE", "LOCAL", "SCOPE", "PERSISTENCY", "IN i/d/n", "OUT i/d/n", "IN", "OUT"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(faces.iter().map(|face| {
            vec![
                face.face_id.to_string(),
                face.remote_uri.clone(),
                local_and_port(face),
                face.scope.clone(),
                face.persistency.clone(),
                format!("{}/{}/{}", face.in_interests, face.in_data, face.in_nacks),
                format!("{}/{}/{}", face.out_interests, face.out_data, face.out_nacks),
                quantity::bytes(face.in_bytes),
                quantity::bytes(face.out_bytes),
            ]
        }));
        table(&rows, "no faces")
    })?;
    Ok(())
}

/// The local end, for an Ethernet face with its driver: `dev://eth1 by AF_XDP`.
fn local_and_port(face: &Face) -> String {
    let driver = face.port.as_deref().and_then(|port| port.split(',').next());
    driver.map_or_else(|| face.local_uri.clone(), |driver| format!("{} by {driver}", face.local_uri))
}

async fn show(global: &Global, reference: &FaceReference) -> Result<(), Failure> {
    let client = global.connect().await?;
    let face = Face::from(&face_reference::require(&client, reference).await?);
    global.output().print(&face, || {
        let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let counts = |interests, data, nacks, bytes| {
            format!("{interests} Interests  {data} Data  {nacks} Nacks  {}", quantity::bytes(bytes))
        };
        fields(&[
            ("Face", face.face_id.to_string()),
            ("Remote", face.remote_uri.clone()),
            ("Local", face.local_uri.clone()),
            ("Kind", format!("{}, {}, {}", face.scope, face.persistency, face.link_type)),
            ("Flags", if face.flags.is_empty() { "-".to_owned() } else { face.flags.join(", ") }),
            ("Port", or_none(face.port.clone())),
            ("MTU", or_none(face.mtu_bytes.map(|mtu| format!("{mtu} B")))),
            ("Expires", or_none(face.expires_ms.map(|ms| format!("in {}", quantity::ms(ms))))),
            ("In", counts(face.in_interests, face.in_data, face.in_nacks, face.in_bytes)),
            ("Out", counts(face.out_interests, face.out_data, face.out_nacks, face.out_bytes)),
        ])
    })?;
    Ok(())
}

async fn create(global: &Global, parameters: ControlParameters) -> Result<(), Failure> {
    let client = global.connect().await?;
    let mut created = face_reference::create(&client, &parameters).await?;
    let differs = |wanted: Option<u64>, is: Option<u64>| wanted.is_some() && wanted != is;
    if !created.is_new
        && (differs(parameters.face_persistency, created.face.face_persistency)
            || differs(parameters.mtu, created.face.mtu))
    {
        let change = ControlParameters {
            face_id: created.face.face_id,
            face_persistency: parameters.face_persistency,
            mtu: parameters.mtu,
            ..ControlParameters::default()
        };
        client.control("faces", "update", &change).await?;
        created.face.face_persistency = parameters.face_persistency.or(created.face.face_persistency);
        created.face.mtu = parameters.mtu.or(created.face.mtu);
    }
    let face = CreatedFace {
        face_id: created.face.face_id.unwrap_or_default().0,
        is_new: created.is_new,
        remote_uri: created.face.uri.or(parameters.uri).unwrap_or_default(),
        local_uri: created.face.local_uri.unwrap_or_default(),
        persistency: created
            .face
            .face_persistency
            .and_then(FacePersistency::from_code)
            .map(|persistency| persistency.to_string())
            .unwrap_or_default(),
        mtu_bytes: created.face.mtu,
    };
    global.output().print(&face, || {
        let what = if face.is_new { "created" } else { "exists already" };
        format!("face {} {what}: {} {}\n", face.face_id, face.remote_uri, face.persistency)
    })?;
    Ok(())
}

async fn destroy(global: &Global, reference: &FaceReference) -> Result<(), Failure> {
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

fn flag_words(flags: u64) -> Vec<&'static str> {
    [
        (face_flags::LOCAL_FIELDS, "local-fields"),
        (face_flags::LP_RELIABILITY, "lp-reliability"),
        (face_flags::CONGESTION_MARKING, "congestion-marking"),
    ]
    .into_iter()
    .filter(|(bit, _)| flags & bit != 0)
    .map(|(_, word)| word)
    .collect()
}
