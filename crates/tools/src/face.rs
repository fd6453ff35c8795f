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
use namewire_packet::nfd::{
    FaceHealth, FaceQueryFilter, FaceState, FaceStatus, Fact, LinkCounts, NodeState, Part, face_flags,
};
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
    /// Create a face; if it exists already, set the given properties
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

/// A face, and what only our routers tell of it.
#[derive(Serialize)]
struct Face {
    #[serde(flatten)]
    status: FaceStatus,
    /// `up`, `down` or `degraded`. `None`: the forwarder does not tell.
    state: Option<&'static str>,
    /// `None`: as above.
    health: Option<FaceHealth>,
}

impl Face {
    fn of(status: FaceStatus, state: &NodeState) -> Self {
        let health = state.health_of(status.face_id).copied();
        Face { state: status.state.map(|state| FaceHealth::state_word(health.as_ref(), state)), status, health }
    }

    /// Down, or its peer leaves Interests unanswered.
    fn is_alarming(&self) -> bool {
        self.state.is_some_and(|state| state != FaceState::Up.word())
    }

    /// A text about its health.
    fn health_text(&self, text: impl Fn(&FaceHealth) -> Option<String>) -> String {
        or_none(self.health.as_ref().and_then(text))
    }
}

fn or_none(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
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
    let mut state = client.state(&[Part::Faces, Part::Health]).await?;
    let filter = FaceQueryFilter { uri_scheme: scheme.map(str::to_owned), ..FaceQueryFilter::default() };
    let faces = std::mem::take(&mut state.faces).into_iter().filter(|face| filter.matches(face));
    let faces: Vec<Face> = faces.map(|face| Face::of(face, &state)).collect();
    global.output().print(&faces, || {
        let fitted = columns::fit(COLUMNS, &faces, terminal::width());
        columns::text(&fitted, |row| faces[row].is_alarming(), "no faces")
    })?;
    Ok(())
}

const COLUMNS: &[Column<Face>] = &[
    Column::text("ID", 0, |face| face.status.face_id.to_string()),
    Column::text("STATE", 1, |face| face.state.unwrap_or("-").to_owned()),
    Column::text("REMOTE", 0, |face| face.status.uri.clone()),
    Column::text("LOCAL", 4, local_and_port),
    Column::text("SCOPE", 6, |face| face.status.face_scope.to_string()),
    Column::text("PERSISTENCY", 5, |face| face.status.face_persistency.to_string()),
    Column::text("IN i/d/n", 3, |face| by_kind(face.status.counters.packets.incoming())),
    Column::text("OUT i/d/n", 3, |face| by_kind(face.status.counters.packets.outgoing())),
    Column::number("ANSWERS IN", 3, |face| face.health_text(health::median_text)),
    Column::number("LOSS", 3, |face| face.health_text(health::loss_text)),
    Column::number("IN NOW", 2, |face| face.health_text(|of| health::rate_text(of, |rates| rates.in_bits_per_s))),
    Column::number("OUT NOW", 2, |face| face.health_text(|of| health::rate_text(of, |rates| rates.out_bits_per_s))),
    Column::number("IN", 3, |face| quantity::bytes(face.status.counters.in_bytes)),
    Column::number("OUT", 3, |face| quantity::bytes(face.status.counters.out_bytes)),
];

/// The local end, for an Ethernet face with its driver: `dev://eth1 by AF_XDP`.
fn local_and_port(Face { status, .. }: &Face) -> String {
    let driver = status.port.as_deref().and_then(|port| port.split(',').next());
    driver.map_or_else(|| status.local_uri.clone(), |driver| format!("{} by {driver}", status.local_uri))
}

async fn show(global: &Global, reference: &FaceReference) -> Result<(), Failure> {
    let client = global.connect().await?;
    let status = face_reference::require(&client, reference).await?;
    let face = Face::of(status, &client.state(&[Part::Health]).await?);
    global.output().print(&face, || text(&face))?;
    Ok(())
}

fn text(face: &Face) -> String {
    let FaceStatus { counters, flags, .. } = &face.status;
    let counts = |[interests, data, nacks]: [u64; 3], bytes| {
        format!("{interests} Interests  {data} Data  {nacks} Nacks  {}", quantity::bytes(bytes))
    };
    let state = face.state.unwrap_or("-");
    let status = &face.status;
    fields(&[
        ("Face", status.face_id.to_string()),
        ("Remote", status.uri.clone()),
        ("Local", status.local_uri.clone()),
        ("State", if face.is_alarming() { terminal::alarming(state) } else { state.to_owned() }),
        ("Since", face.health_text(|health| Some(health::since_text(health)))),
        ("Kind", format!("{}, {}, {}", status.face_scope, status.face_persistency, status.link_type)),
        ("Flags", if *flags == 0 { "-".to_owned() } else { face_flags::words(*flags).join(", ") }),
        ("Port", or_none(status.port.clone())),
        ("Marks", or_none(marking(status))),
        ("MTU", or_none(status.mtu.map(|mtu| format!("{mtu} B")))),
        ("Path MTU", or_none(status.path_mtu.map(|mtu| format!("{mtu} B")))),
        ("Expires", or_none(status.expiration_period_ms.map(|ms| format!("in {}", quantity::ms(ms))))),
        ("In", counts(counters.packets.incoming(), counters.in_bytes)),
        ("Out", counts(counters.packets.outgoing(), counters.out_bytes)),
        ("Link", or_none(link_text(&status.link))),
        ("Answers", face.health_text(health::answers_text)),
        ("Lately", face.health_text(health::recent_text)),
    ])
}

/// Each of its counts that is known: `frames retransmitted 3`.
fn link_text(link: &LinkCounts) -> Option<String> {
    let count = |fact: &Fact<LinkCounts>| Some(format!("{} {}", fact.name.replace('_', " "), (fact.of)(link)?));
    let counts: Vec<String> = LinkCounts::FACTS.iter().filter_map(count).collect();
    (!counts.is_empty()).then(|| counts.join("  "))
}

/// From which length of the queue on it marks, and how often.
fn marking(face: &FaceStatus) -> Option<String> {
    let (threshold, interval) = (face.default_congestion_threshold_bytes?, face.base_congestion_marking_interval_ns?);
    Some(format!(
        "from {} in the send queue on, every {}",
        quantity::bytes(threshold),
        quantity::ms(interval / 1_000_000)
    ))
}
