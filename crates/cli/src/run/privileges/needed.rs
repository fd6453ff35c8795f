//! What may a router need after its start, and why?
//!
//! A device of DPDK needs everything: its drivers map memory and registers of devices, at any time.
//!
//! Limits: a command may ask for a face that the configuration does not hint at, for example an Ethernet face where
//! the configuration has no Ethernet. Without the capability, the command fails with this reason;
//! `faces.ethernet.by_command = true` (any section `ether` of an `nfd.conf`) lets it succeed.

use namewire_client::discovery::Environment;
use namewire_configuration::{
    Configuration, Declarations, Settings, Source,
    settings::{EthernetIo, FacesSection},
    text::Uri,
    trust_anchors::TrustAnchors,
};
use namewire_packet::nfd::FaceUri;
use rustix::{
    fs::{Access, AtFlags, CWD, accessat},
    io::Errno,
    thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities},
};
use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

/// Ports below this one need a capability, unless the administrator changed `net.ipv4.ip_unprivileged_port_start`.
const FIRST_FREE_PORT: u16 = 1024;

/// Capabilities, and what needs them.
pub(super) struct Need {
    pub(super) capabilities: CapabilitySet,
    pub(super) why: String,
}

impl Need {
    fn new(capabilities: CapabilitySet, why: impl Into<String>) -> Self {
        Need { capabilities, why: why.into() }
    }

    pub(super) fn is_everything(&self) -> bool {
        self.capabilities == CapabilitySet::all()
    }
}

/// A file or folder that the router uses while it runs.
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) is_written: bool,
}

pub(super) fn needed(settings: &Settings, state: &Declarations) -> Vec<Need> {
    let faces = &settings.faces;
    if !faces.dpdk.ports.is_empty() {
        return vec![Need::new(CapabilitySet::all(), "the drivers of DPDK")];
    }
    let mut needs = Vec::new();
    let ethernet = &faces.ethernet;
    let declared = settings.face.iter().map(|face| &face.uri).chain(settings.route.iter().map(|route| &route.face));
    let kept = state.faces.iter().map(|face| &face.uri).chain(state.routes.iter().map(|route| &route.face));
    let has_stations = declared.chain(kept).any(|Uri(uri)| matches!(uri, FaceUri::Ether(_)));
    if ethernet.listen || ethernet.multicast || ethernet.by_command || has_stations {
        needs.push(Need::new(CapabilitySet::NET_RAW, "Ethernet faces"));
        if ethernet.io != EthernetIo::Socket {
            let xdp = CapabilitySet::NET_ADMIN | CapabilitySet::BPF | CapabilitySet::IPC_LOCK;
            needs.push(Need::new(xdp, "AF_XDP"));
        }
    }
    // Each UDP face has a socket of its own on the listener's port, for as long as the router runs.
    if listeners(settings).any(|address| address.port() != 0 && address.port() < FIRST_FREE_PORT) {
        needs.push(Need::new(CapabilitySet::NET_BIND_SERVICE, format!("ports below {FIRST_FREE_PORT}")));
    }
    needs
}

fn listeners(settings: &Settings) -> impl Iterator<Item = SocketAddr> {
    let FacesSection { udp, tcp, websocket, multicast, .. } = &settings.faces;
    let groups = multicast.group4().map(SocketAddr::V4).into_iter().chain(multicast.group6().map(SocketAddr::V6));
    let datagrams = if udp.enabled { udp.addresses() } else { Vec::new() };
    let streams = if tcp.enabled { tcp.addresses() } else { Vec::new() };
    let web = websocket.listen.iter().chain(&websocket.listen_tls).filter(|_| websocket.enabled);
    let others = web.chain(&settings.observe.listen).chain(settings.repo.bulk_listen.iter()).copied();
    datagrams.into_iter().chain(streams).chain(groups).chain(others).collect::<Vec<_>>().into_iter()
}

/// Where the router reads and writes while it runs.
pub(super) fn places(configuration: &Configuration, source: Option<&Source>) -> Vec<Place> {
    let Configuration { settings, trust, .. } = configuration;
    let faces = &settings.faces;
    let mut places = Vec::new();
    let websocket = &faces.websocket;
    let read = source.map(Source::path).into_iter().map(Path::to_owned);
    let of_websocket = [&websocket.certificate, &websocket.key, &websocket.trusted_certificates];
    let read = read.chain(of_websocket.into_iter().flatten().cloned());
    let read = read.chain(settings.trust.files_of_rules().map(Path::to_owned)).chain(settings.trust.schema.clone());
    let read = read.chain(TrustAnchors::files(trust).map(Path::to_owned));
    places.extend(read.map(|path| Place { path, is_written: false }));
    let folder_of = |path: &Path| path.parent().map(Path::to_owned);
    let mut written = Vec::new();
    if faces.unix.enabled {
        let default = || Environment::of_process().sockets_to_make().into_iter().next();
        written.extend(faces.unix.path.clone().or_else(default).as_deref().and_then(folder_of));
    }
    written.extend(faces.memif.path.as_deref().and_then(folder_of));
    written.extend(settings.state.file.as_deref().and_then(folder_of));
    written.extend(settings.repo.folder.clone().filter(|_| settings.repo.enabled));
    let here = |path: PathBuf| if path.as_os_str().is_empty() { PathBuf::from(".") } else { path };
    places.extend(written.into_iter().map(|path| Place { path: here(path), is_written: true }));
    places
}

/// The capability to use a place of another user, if the process needs it. For a moment, the thread works without
/// capabilities and looks.
pub(super) fn closed_place(places: &[Place], had: CapabilitySet) -> io::Result<Option<Need>> {
    if !had.contains(CapabilitySet::DAC_OVERRIDE) {
        return Ok(None);
    }
    let now = capabilities(None)?;
    set_capabilities(None, CapabilitySets { effective: CapabilitySet::empty(), ..now })?;
    let closed = first_closed(places).map(Path::to_owned);
    set_capabilities(None, now)?;
    let why = |path: PathBuf| format!("{} belongs to another user", path.display());
    Ok(closed.map(|path| Need::new(CapabilitySet::DAC_OVERRIDE, why(path))))
}

/// The first place that the thread may not use as it is to be used.
pub(super) fn first_closed(places: &[Place]) -> Option<&Path> {
    places.iter().find(|place| !is_open(place)).map(|place| place.path.as_path())
}

/// A folder that is missing will be made in the nearest one that exists. Errors of other kinds are the reader's to
/// report.
fn is_open(place: &Place) -> bool {
    let wanted = match place.is_written {
        true => Access::WRITE_OK | Access::EXEC_OK,
        false => Access::READ_OK,
    };
    for path in place.path.ancestors() {
        match accessat(CWD, path, wanted, AtFlags::EACCESS) {
            Err(Errno::NOENT) if place.is_written => {}
            Err(Errno::ACCESS | Errno::PERM) => return false,
            _ => return true,
        }
    }
    true
}
