//! `namewire face`: list, show, create, change, destroy and watch faces.

mod change;
mod health;
mod watch;

use crate::{
    Failure, Global,
    columns::{self, Column},
    face_reference::{self, FaceReference},
    output::fields,
    quantity, terminal,
};
use health::Health;
use namewire_packet::nfd::{FaceCounters, FaceHealth, FaceQueryFilter, FaceState, FaceStatus, face_flags};
use serde::Serialize;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List all faces, or those of one kind
    List {
        /// Only faces with this scheme in their remote or local URI, for example udp4
        #[arg(long)]
        scheme: Option<String>,
    },
    /// Show one face with all its counters
    Show {
        /// Face number or remote URI
        #[arg(value_name = "FACE")]
        face: FaceReference,
    },
    /// Create a face; one that exists already takes the properties given here
    Create(change::Create),
    /// Change properties of a face
    Update(change::Update),
    /// Destroy a face and its routes
    Destroy {
        /// Face number or remote URI
        #[arg(value_name = "FACE")]
        face: FaceReference,
    },
    /// Print events of faces as they happen: created, destroyed, up, down
    Watch(watch::Args),
}

/// The state of a face that is up and whose peer lately left many Interests unanswered.
const DEGRADED: &str = "degraded";

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
    /// `None`: the path takes frames of the MTU, or the forwarder does not tell.
    path_mtu_bytes: Option<u64>,
    port: Option<String>,
    /// `up`, `down` or [`DEGRADED`]. `None`: the forwarder does not tell (other forwarders than Namewire).
    state: Option<String>,
    expires_ms: Option<u64>,
    base_congestion_marking_interval_ns: Option<u64>,
    default_congestion_threshold_bytes: Option<u64>,
    #[serde(flatten)]
    counters: FaceCounters,
    /// `None`: as above.
    health: Option<Health>,
}

impl Face {
    fn of(face: &FaceStatus, health: &[FaceHealth]) -> Self {
        let health = Health::find(health, face.face_id);
        let state = match face.state {
            Some(FaceState::Up) if health.as_ref().is_some_and(Health::is_degraded) => Some(DEGRADED.to_owned()),
            state => state.map(|state| state.to_string()),
        };
        Face {
            state,
            face_id: face.face_id.0,
            remote_uri: face.uri.clone(),
            local_uri: face.local_uri.clone(),
            scope: face.face_scope.to_string(),
            persistency: face.face_persistency.to_string(),
            link_type: face.link_type.to_string(),
            flags: flag_words(face.flags),
            mtu_bytes: face.mtu,
            path_mtu_bytes: face.path_mtu,
            port: face.port.clone(),
            expires_ms: face.expiration_period_ms,
            base_congestion_marking_interval_ns: face.base_congestion_marking_interval_ns,
            default_congestion_threshold_bytes: face.default_congestion_threshold_bytes,
            counters: face.counters,
            health,
        }
    }

    fn is_down(&self) -> bool {
        self.state.as_deref() == Some(FaceState::Down.word())
    }

    /// Down, or its peer leaves Interests unanswered.
    fn is_alarming(&self) -> bool {
        self.is_down() || self.state.as_deref() == Some(DEGRADED)
    }

    fn state_text(&self) -> &str {
        self.state.as_deref().unwrap_or("-")
    }
}

/// Interests, Data and Nacks, as a column shows them.
fn by_kind([interests, data, nacks]: [u64; 3]) -> String {
    format!("{interests}/{data}/{nacks}")
}

pub(crate) async fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { scheme } => list(global, scheme.as_deref()).await,
        Command::Show { face } => show(global, &face).await,
        Command::Create(args) => change::create(global, args).await,
        Command::Update(args) => change::update(global, args).await,
        Command::Watch(args) => watch::execute(global, args).await,
        Command::Destroy { face } => change::destroy(global, &face).await,
    }
}

async fn list(global: &Global, scheme: Option<&str>) -> Result<(), Failure> {
    let client = global.connect().await?;
    let faces: Vec<FaceStatus> = client.status_list("faces", "list").await?;
    let filter = FaceQueryFilter { uri_scheme: scheme.map(str::to_owned), ..FaceQueryFilter::default() };
    let health = health::fetch(&client).await;
    let shown = faces.iter().filter(|face| filter.matches(face));
    let faces: Vec<Face> = shown.map(|face| Face::of(face, &health)).collect();
    global.output().print(&faces, || {
        let fitted = columns::fit(COLUMNS, &faces, terminal::width());
        columns::text(&fitted, |row| faces[row].is_alarming(), "no faces")
    })?;
    Ok(())
}

const COLUMNS: &[Column<Face>] = &[
    Column { heading: "ID", rank: 0, is_number: false, cell: |face| face.face_id.to_string() },
    Column { heading: "STATE", rank: 1, is_number: false, cell: |face| face.state_text().to_owned() },
    Column { heading: "REMOTE", rank: 0, is_number: false, cell: |face| face.remote_uri.clone() },
    Column { heading: "LOCAL", rank: 4, is_number: false, cell: local_and_port },
    Column { heading: "SCOPE", rank: 6, is_number: false, cell: |face| face.scope.clone() },
    Column { heading: "PERSISTENCY", rank: 5, is_number: false, cell: |face| face.persistency.clone() },
    Column { heading: "IN i/d/n", rank: 3, is_number: false, cell: |face| by_kind(face.counters.packets.incoming()) },
    Column { heading: "OUT i/d/n", rank: 3, is_number: false, cell: |face| by_kind(face.counters.packets.outgoing()) },
    Column {
        heading: "ANSWERS IN",
        rank: 3,
        is_number: true,
        cell: |face| face.health.as_ref().and_then(Health::median_text).unwrap_or_else(|| "-".to_owned()),
    },
    Column {
        heading: "LOSS",
        rank: 3,
        is_number: true,
        cell: |face| face.health.as_ref().and_then(Health::loss_text).unwrap_or_else(|| "-".to_owned()),
    },
    Column {
        heading: "IN NOW",
        rank: 2,
        is_number: true,
        cell: |face| face.health.as_ref().and_then(Health::in_rate_text).unwrap_or_else(|| "-".to_owned()),
    },
    Column {
        heading: "OUT NOW",
        rank: 2,
        is_number: true,
        cell: |face| face.health.as_ref().and_then(Health::out_rate_text).unwrap_or_else(|| "-".to_owned()),
    },
    Column { heading: "IN", rank: 3, is_number: true, cell: |face| quantity::bytes(face.counters.in_bytes) },
    Column { heading: "OUT", rank: 3, is_number: true, cell: |face| quantity::bytes(face.counters.out_bytes) },
];

/// The local end, for an Ethernet face with its driver: `dev://eth1 by AF_XDP`.
fn local_and_port(face: &Face) -> String {
    let driver = face.port.as_deref().and_then(|port| port.split(',').next());
    driver.map_or_else(|| face.local_uri.clone(), |driver| format!("{} by {driver}", face.local_uri))
}

async fn show(global: &Global, reference: &FaceReference) -> Result<(), Failure> {
    let client = global.connect().await?;
    let status = face_reference::require(&client, reference).await?;
    let face = Face::of(&status, &health::fetch(&client).await);
    global.output().print(&face, || {
        let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let counts = |[interests, data, nacks]: [u64; 3], bytes| {
            format!("{interests} Interests  {data} Data  {nacks} Nacks  {}", quantity::bytes(bytes))
        };
        fields(&[
            ("Face", face.face_id.to_string()),
            ("Remote", face.remote_uri.clone()),
            ("Local", face.local_uri.clone()),
            (
                "State",
                if face.is_alarming() { terminal::alarming(face.state_text()) } else { face.state_text().to_owned() },
            ),
            ("Since", or_none(face.health.as_ref().map(Health::since_text))),
            ("Kind", format!("{}, {}, {}", face.scope, face.persistency, face.link_type)),
            ("Flags", if face.flags.is_empty() { "-".to_owned() } else { face.flags.join(", ") }),
            ("Port", or_none(face.port.clone())),
            ("Marks", or_none(marking(&face))),
            ("MTU", or_none(face.mtu_bytes.map(|mtu| format!("{mtu} B")))),
            ("Path MTU", or_none(face.path_mtu_bytes.map(|mtu| format!("{mtu} B")))),
            ("Expires", or_none(face.expires_ms.map(|ms| format!("in {}", quantity::ms(ms))))),
            ("In", counts(face.counters.packets.incoming(), face.counters.in_bytes)),
            ("Out", counts(face.counters.packets.outgoing(), face.counters.out_bytes)),
            ("Answers", or_none(face.health.as_ref().and_then(Health::answers_text))),
            ("Lately", or_none(face.health.as_ref().and_then(Health::recent_text))),
        ])
    })?;
    Ok(())
}

/// From which length of the queue on it marks, and how often.
fn marking(face: &Face) -> Option<String> {
    let (threshold, interval) = (face.default_congestion_threshold_bytes?, face.base_congestion_marking_interval_ns?);
    Some(format!(
        "from {} in the send queue on, every {}",
        quantity::bytes(threshold),
        quantity::ms(interval / 1_000_000)
    ))
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
