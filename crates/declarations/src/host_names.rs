//! The addresses of the host names of faces. A FaceUri may have a host name; management takes only addresses.
//!
//! [`Names::look_up`] does not borrow the keeper, so the keeper can work meanwhile. It looks up all names at once and
//! ends after [`RESOLVE_TIMEOUT`] at the latest. The system's resolver may take longer, in a thread of the runtime's
//! pool. The pool has at most 512 threads; further names wait for a thread, up to the same limit.

use namewire_configuration::text::Uri;
use namewire_packet::nfd::FaceUri;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::task::JoinSet;

/// Longest wait for hosts' addresses.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// What is to be tried again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Make what is declared but not made.
    pub missing: bool,
    /// Let the faces that are down follow their host names.
    pub down: bool,
    /// The same for all faces that have heard nothing for a minute, and for those that are down.
    pub silent: bool,
}

/// Host names of faces, to be looked up.
#[derive(Debug)]
pub struct Names {
    due: Due,
    uris: BTreeSet<Uri>,
}

impl Names {
    pub(crate) fn new(due: Due) -> Self {
        Names { due, uris: BTreeSet::new() }
    }

    /// Adds the host name of a face, if its URI has one.
    pub(crate) fn add(&mut self, uri: &Uri) {
        if uri.0.host_to_look_up().is_some() {
            self.uris.insert(uri.clone());
        }
    }

    /// Adds the names of another keeper, for which the same is due.
    pub fn join(&mut self, other: Names) {
        self.uris.extend(other.uris);
    }

    /// True if there is nothing to look up.
    pub fn is_empty(&self) -> bool {
        self.uris.is_empty()
    }

    /// Looks up all names at the same time.
    pub async fn look_up(self) -> Addresses {
        let mut look_ups = JoinSet::new();
        for uri in self.uris {
            look_ups.spawn(async move {
                let addresses = addresses_of(&uri.0).await;
                (uri, addresses)
            });
        }
        let mut found = BTreeMap::new();
        while let Some(ended) = look_ups.join_next().await {
            if let Ok((uri, addresses)) = ended {
                found.insert(uri, addresses);
            }
        }
        Addresses { due: self.due, found }
    }
}

/// What a look-up has found.
#[derive(Debug)]
pub struct Addresses {
    pub(crate) due: Due,
    /// The canonical FaceUris of all addresses of a host name, or why there are none.
    pub(crate) found: BTreeMap<Uri, Result<Vec<FaceUri>, String>>,
}

impl Addresses {
    /// The FaceUri to make a face with: the one that it has now, if the name still leads there. `None` if the name was
    /// not looked up.
    pub(crate) fn canonical(&self, uri: &Uri, current: Option<&FaceUri>) -> Option<Result<FaceUri, String>> {
        let Some(host) = uri.0.host_to_look_up() else { return Some(Ok(without_look_up(&uri.0))) };
        Some(match self.found.get(uri)? {
            Ok(addresses) => {
                let kept = current.filter(|current| addresses.contains(current));
                kept.or_else(|| addresses.first()).cloned().ok_or_else(|| no_address(host))
            }
            Err(why) => Err(why.clone()),
        })
    }

    /// True if the name leads somewhere, but no longer to `current`.
    pub(crate) fn have_left(&self, uri: &Uri, current: &FaceUri) -> bool {
        let Some(Ok(addresses)) = self.found.get(uri) else { return false };
        !addresses.is_empty() && !addresses.contains(current)
    }
}

fn without_look_up(uri: &FaceUri) -> FaceUri {
    // Without a canonical form, it is not ours to resolve; management will refuse it and say why.
    uri.canonize().unwrap_or_else(|| uri.clone())
}

fn no_address(host: &str) -> String {
    format!("{host} has no address of the wanted family")
}

/// The canonical FaceUris of all addresses that a host name has now.
async fn addresses_of(uri: &FaceUri) -> Result<Vec<FaceUri>, String> {
    let (FaceUri::NonCanonical(named), Some(host)) = (uri, uri.host_to_look_up()) else { return Ok(vec![uri.clone()]) };
    let look_up = tokio::net::lookup_host((host, 0));
    let addresses = match tokio::time::timeout(RESOLVE_TIMEOUT, look_up).await {
        Ok(addresses) => addresses.map_err(|error| format!("cannot resolve {host}: {error}"))?,
        Err(_) => return Err(format!("cannot resolve {host}: no answer")),
    };
    Ok(addresses.filter_map(|address| named.canonize_with(address.ip())).collect())
}
