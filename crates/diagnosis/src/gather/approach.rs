//! Where is the forwarder, and why does a place not answer?

use super::ANSWER_TIMEOUT;
use crate::facts::{ApproachFacts, ChosenBy, FileFacts, Refusal, SocketFacts};
use namewire_client::{
    Client, ConnectError, TransportUri,
    discovery::{Environment, TransportChoice, TransportSource},
};
use rustix::fs::{Access, access};
use std::{
    fs, io,
    os::unix::{
        fs::{FileTypeExt, MetadataExt},
        net::UnixStream,
    },
    path::{Path, PathBuf},
};
use tokio::time::timeout;

/// Looks for the forwarder where every program does, and connects to it.
pub(super) async fn approach(named: Option<&TransportUri>) -> (ApproachFacts, Option<Client>) {
    let environment = Environment::of_process();
    let mut facts = ApproachFacts::default();
    let choice = match named {
        Some(uri) => TransportChoice { source: TransportSource::Explicit, candidates: vec![uri.clone()] },
        None => match environment.choose_transport() {
            Ok(choice) => choice,
            Err(error) => {
                facts.chosen_by = match environment.transport {
                    Some(_) => ChosenBy::Environment,
                    None => ChosenBy::ClientConf("client.conf".to_owned()),
                };
                facts.malformed = Some(error.to_string());
                facts.sockets = sockets(&environment, &[]);
                return (facts, None);
            }
        },
    };
    facts.chosen_by = match &choice.source {
        TransportSource::Explicit => ChosenBy::Option,
        TransportSource::Environment => ChosenBy::Environment,
        TransportSource::ClientConf(path) => ChosenBy::ClientConf(path.display().to_string()),
        TransportSource::Default => ChosenBy::Default,
    };
    facts.sockets = sockets(&environment, &choice.candidates);
    for uri in choice.candidates {
        let why = match timeout(ANSWER_TIMEOUT, Client::connect_to(uri.clone())).await {
            Ok(Ok(client)) => return (facts, Some(client)),
            Ok(Err(ConnectError::NoForwarder { tried, .. })) => {
                tried.into_iter().map(|(_, error)| error.to_string()).collect::<Vec<_>>().join("; ")
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no connection within {} s", ANSWER_TIMEOUT.as_secs()),
        };
        facts.tried.push((uri.to_string(), why));
    }
    (facts, None)
}

/// The sockets of this choice, and those in the usual places.
fn sockets(environment: &Environment, chosen: &[TransportUri]) -> Vec<SocketFacts> {
    let of_choice = chosen.iter().filter_map(|uri| match uri {
        TransportUri::Unix(path) => Some(path.clone()),
        TransportUri::Tcp { .. } | TransportUri::Udp { .. } => None,
    });
    let mut paths: Vec<PathBuf> = of_choice.chain(environment.default_sockets()).collect();
    let mut seen = Vec::new();
    paths.retain(|path| {
        let is_new = !seen.contains(path);
        seen.push(path.clone());
        is_new
    });
    paths.iter().map(|path| look(path)).collect()
}

fn look(path: &Path) -> SocketFacts {
    let metadata = fs::metadata(path).ok();
    let is_socket = metadata.as_ref().is_some_and(|metadata| metadata.file_type().is_socket());
    let refusal = is_socket.then(|| UnixStream::connect(path).err()).flatten().map(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => Refusal::NobodyListens,
        io::ErrorKind::PermissionDenied => Refusal::NotPermitted,
        _ => Refusal::Other(error.to_string()),
    });
    SocketFacts {
        path: path.display().to_string(),
        file: metadata.map(|metadata| FileFacts { uid: metadata.uid(), mode: metadata.mode() & 0o7777 }),
        is_socket,
        refusal,
        can_be_made: path.parent().is_some_and(can_be_made_in),
    }
}

/// The folder is there or can be made, and this user may write in it.
fn can_be_made_in(folder: &Path) -> bool {
    let existing = folder.ancestors().find(|folder| folder.exists());
    // A router makes one folder, not several.
    let depth = existing.map_or(usize::MAX, |existing| folder.ancestors().take_while(|one| *one != existing).count());
    depth <= 1 && existing.is_some_and(|folder| access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok())
}
