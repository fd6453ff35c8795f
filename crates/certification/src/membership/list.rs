//! The networks that a host has joined: a file that `namewire join` and `leave` write, and the router reads.
//!
//! ```toml
//! [[network]]
//! kept_by = "/run/nfd/nfd.sock"
//! router = "udp4://192.0.2.1:6363"
//! name = "/site/bob"
//! routes = ["/"]
//! ```
//!
//! A network belongs to the router with this Unix socket: other routers of the same user leave it alone. The file is
//! `namewire-networks.toml` beside the key chain of the user as whom the router runs.
//!
//! Limits: [`FILE_BYTES_MAX`], [`NETWORKS_MAX`] networks, [`ROUTES_MAX`] routes of each.

use namewire_configuration::{changed_file, input_file, parse_toml};
use namewire_packet::NameBuf;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Its name, in the folder of the key chain.
pub const FILE_NAME: &str = "namewire-networks.toml";
/// The largest file.
pub const FILE_BYTES_MAX: u64 = 256 << 10;
/// The most networks in it.
pub const NETWORKS_MAX: usize = 16;
/// The most routes of a network.
pub const ROUTES_MAX: usize = 64;

const HEAD: &str =
    "# Networks that this host has joined. `namewire join` and `namewire leave` write this file anew.\n\n";

/// A network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The Unix socket of the router that keeps it.
    pub kept_by: PathBuf,
    /// Face URI of its router, in canonical form.
    pub router: String,
    /// The host's identity and prefix there; without one, the host only fetches.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "name_option")]
    pub name: Option<NameBuf>,
    /// What the network's router is asked for: prefixes that this host routes there.
    #[serde(deserialize_with = "names")]
    pub routes: Vec<NameBuf>,
    /// Certificate of somebody who vouches for the network's authority, in Base64: for renewals after the authority has
    /// a new key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<String>,
    /// The face was there before the host joined, and stays when it leaves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_face: bool,
}

fn name_option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NameBuf>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| text.parse().map_err(de::Error::custom)).transpose()
}

fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<NameBuf>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| text.parse().map_err(de::Error::custom)).collect()
}

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct OnDisk {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    network: Vec<Network>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// It cannot be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    /// It says what it must not.
    #[error("{0}: {1}")]
    Content(PathBuf, String),
}

/// The file of a user.
#[derive(Clone, Debug)]
pub struct NetworkList {
    path: PathBuf,
}

impl NetworkList {
    /// The file in the folder of this key chain.
    pub fn beside(pib_directory: &Path) -> Self {
        NetworkList { path: pib_directory.join(FILE_NAME) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The networks. A file that does not exist has none.
    ///
    /// # Errors
    /// It cannot be read, is too large, or says what it must not.
    pub fn read(&self) -> Result<Vec<Network>, ListError> {
        let failed = |error| ListError::File(self.path.clone(), error);
        let wrong = |what: String| ListError::Content(self.path.clone(), what);
        let bytes = match input_file::read(&self.path, FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(failed(error)),
        };
        let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
        let OnDisk { network: networks } = parse_toml(&text).map_err(|error| wrong(error.to_string()))?;
        if networks.len() > NETWORKS_MAX || networks.iter().any(|network| network.routes.len() > ROUTES_MAX) {
            return Err(wrong(format!("at most {NETWORKS_MAX} networks with {ROUTES_MAX} routes each")));
        }
        Ok(networks)
    }

    /// The networks that the router with this socket keeps.
    ///
    /// # Errors
    /// As [`NetworkList::read`].
    pub fn kept_by(&self, socket: &Path) -> Result<Vec<Network>, ListError> {
        Ok(self.read()?.into_iter().filter(|network| network.kept_by == socket).collect())
    }

    /// Changes the networks. Nothing is written if `change` refuses.
    ///
    /// # Errors
    /// It cannot be read or written, or `change` refuses.
    pub fn change(&self, change: impl FnOnce(&mut Vec<Network>) -> Result<(), String>) -> Result<(), ListError> {
        let failed = |error| ListError::File(self.path.clone(), error);
        changed_file::change(&self.path, failed, || {
            let mut networks = self.read()?;
            let wrong = |what: String| ListError::Content(self.path.clone(), what);
            change(&mut networks).map_err(wrong)?;
            if networks.len() > NETWORKS_MAX {
                return Err(wrong(format!("at most {NETWORKS_MAX} networks")));
            }
            let text = toml::to_string(&OnDisk { network: networks });
            Ok(format!("{HEAD}{}", text.map_err(|error| wrong(error.to_string()))?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let list = NetworkList::beside(folder.path());
        assert_eq!(list.read().unwrap(), []);
        let network = Network {
            kept_by: "/run/nfd/nfd.sock".into(),
            router: "udp4://192.0.2.1:6363".to_owned(),
            name: Some("/site/bob".parse().unwrap()),
            routes: vec!["/".parse().unwrap()],
            anchor: None,
            keeps_face: true,
        };
        list.change(|networks| {
            networks.push(network.clone());
            Ok(())
        })
        .unwrap();
        assert_eq!(list.read().unwrap(), std::slice::from_ref(&network));
        assert_eq!(list.kept_by(Path::new("/run/nfd/nfd.sock")).unwrap(), [network]);
        assert_eq!(list.kept_by(Path::new("/tmp/other.sock")).unwrap(), []);
        assert!(list.change(|_| Err("no".to_owned())).is_err());
        std::fs::write(list.path(), "[[network]]\nrouter = 1\n").unwrap();
        assert!(matches!(list.read(), Err(ListError::Content(..))));
    }
}
