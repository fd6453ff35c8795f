//! Places of listeners that speak HTTP: are honest clients let in, from another host and over loopback?

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::attack::Attack;
use crate::knock::{Door, KnockReport};
use crate::namespaces::Peer;
use crate::process::BoundProcess;

/// Longest wait for the clients.
const KNOCK_LIMIT: Duration = Duration::from_secs(300);

/// What an attack takes the places of.
pub(super) fn door(attack: Attack) -> Option<Door> {
    match attack {
        Attack::WebsocketPlaces => Some(Door::Websocket),
        Attack::ObserverPlaces => Some(Door::Observer),
        _ => None,
    }
}

/// Where a door is, for remote hosts and for this machine.
pub(super) fn addresses(door: Door, router: SocketAddr) -> [SocketAddr; 2] {
    let port = match door {
        Door::Websocket => 9_696,
        Door::Observer => 9_695,
    };
    [router.ip(), Ipv4Addr::LOCALHOST.into()].map(|address| SocketAddr::new(address, port))
}

/// The options of a router with this door.
pub(super) fn options(door: Door, router: SocketAddr) -> Vec<String> {
    let option = match door {
        Door::Websocket => "--listen-ws",
        Door::Observer => "--observe",
    };
    addresses(door, router).iter().flat_map(|address| [option.to_owned(), address.to_string()]).collect()
}

/// Lets an honest client of this machine (`is_local`) or of another host knock with this command.
pub(super) fn knock(
    mut command: Command,
    door: Door,
    router: SocketAddr,
    is_local: bool,
) -> anyhow::Result<KnockReport> {
    let [remote, local] = addresses(door, router);
    let name = clap::ValueEnum::to_possible_value(&door).map(|value| value.get_name().to_owned()).unwrap_or_default();
    command.args(["knock", &name, "--to", &(if is_local { local } else { remote }).to_string()]);
    if !is_local {
        command.args(["--bind", &Peer::Honest.address().to_string()]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = BoundProcess::start(&mut command, None)?.output(KNOCK_LIMIT)?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).context("no report was printed")
}
