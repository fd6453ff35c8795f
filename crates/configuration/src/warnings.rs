//! Settings that are allowed but are most likely mistakes.

use super::{Settings, trust::is_schema};
use std::{net::SocketAddr, path::PathBuf};

/// One line for each such setting.
pub(super) fn of(settings: &Settings) -> Vec<String> {
    let faces = &settings.faces;
    let mut doubts = Vec::new();
    let listeners: [(&str, bool, usize); 3] = [
        ("tcp", faces.tcp.enabled, faces.tcp.listen.as_ref().map_or(1, Vec::len)),
        ("udp", faces.udp.enabled, faces.udp.listen.as_ref().map_or(1, Vec::len)),
        ("websocket", faces.websocket.enabled, faces.websocket.listen.len() + faces.websocket.listen_tls.len()),
    ];
    for (section, _, _) in listeners.iter().filter(|(_, is_enabled, addresses)| *is_enabled && *addresses == 0) {
        doubts.push(format!("[faces.{section}] is enabled, but listens nowhere"));
    }
    if faces.multicast.enabled && !faces.multicast.ipv4 && !faces.multicast.ipv6 {
        doubts.push("[faces.multicast] is enabled, but neither ipv4 nor ipv6 is".to_owned());
    }
    let websocket = &faces.websocket;
    let files: [(&str, &Option<PathBuf>); 3] = [
        ("certificate", &websocket.certificate),
        ("key", &websocket.key),
        ("trusted_certificates", &websocket.trusted_certificates),
    ];
    for (key, path) in files {
        if let Some(path) = path.as_ref().filter(|path| !path.exists()) {
            doubts.push(format!("[faces.websocket] {key}: {} does not exist", path.display()));
        }
    }
    let rules = settings.trust.rules().into_iter().chain([&settings.repo.commands, &settings.repo.data]);
    if settings.trust.schema.is_some() && !rules.into_iter().any(is_schema) {
        doubts.push("[trust] schema decides nothing: write for example localhop_rib = \"schema\"".to_owned());
    }
    let declared = settings.face.iter().map(|face| &face.uri);
    for uri in declared.chain(settings.route.iter().map(|route| &route.face)) {
        let scheme = uri.0.scheme();
        let off = match scheme.trim_end_matches(['4', '6']) {
            "tcp" if !faces.tcp.outgoing => "tcp",
            "udp" if !faces.udp.outgoing => "udp",
            _ => continue,
        };
        doubts.push(format!("face {uri} cannot be made: outgoing of [faces.{off}] is false"));
    }
    doubts
}

/// One line for each address at which the observer answers other machines: it has no login.
pub fn open_observers(settings: &Settings) -> Vec<String> {
    let is_open = |address: &&SocketAddr| !address.ip().to_canonical().is_loopback();
    let line = |address: &SocketAddr| {
        let (port, traced) =
            (address.port(), if settings.observe.trace { ", and traces packets for them" } else { "" });
        format!(
            "the observer at {address} has no login: it shows this router to all who reach the address{traced}; at \
             127.0.0.1:{port} it answers this machine only"
        )
    };
    settings.observe.listen.iter().filter(is_open).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Configuration, DEFAULT_TOML, from_toml},
        open_observers,
    };
    use std::path::Path;

    fn warnings(text: &str) -> Vec<String> {
        Configuration::new(from_toml(text).expect(text), Path::new("/nowhere")).expect(text).warnings
    }

    #[test]
    fn the_defaults_leave_no_doubt() {
        assert_eq!(warnings(DEFAULT_TOML), <[&str; 0]>::default());
    }

    #[test]
    fn every_doubt_is_said_once() {
        for (text, doubt) in [
            ("[faces.tcp]\nlisten = []", "[faces.tcp] is enabled, but listens nowhere"),
            ("[faces.websocket]\nenabled = true\nlisten = []", "[faces.websocket] is enabled, but listens nowhere"),
            ("[faces.multicast]\nenabled = true\nipv4 = false\nipv6 = false", "neither ipv4 nor ipv6"),
            ("[faces.websocket]\ntrusted_certificates = \"x.pem\"", "/nowhere/x.pem does not exist"),
            ("[faces.udp]\noutgoing = false\n[[face]]\nuri = \"udp4://192.0.2.1:1\"", "face udp4://192.0.2.1:1 cannot"),
            ("[faces.tcp]\noutgoing = false\n[[route]]\nprefix = \"/\"\nface = \"tcp://a\"", "face tcp://a cannot"),
        ] {
            let warnings = warnings(text);
            assert!(matches!(&warnings[..], [one] if one.contains(doubt)), "{text}: {warnings:?}");
        }
    }

    #[test]
    fn an_observer_that_answers_other_machines_is_named() {
        let of = |listen: &str| open_observers(&from_toml(&format!("[observe]\nlisten = {listen}")).unwrap());
        assert_eq!(of("[\"127.0.0.1:1\", \"127.0.0.2:1\", \"[::1]:1\", \"[::ffff:127.0.0.1]:1\"]").len(), 0);
        for open in ["0.0.0.0:9695", "[::]:9695", "192.0.2.1:9695"] {
            let warnings = of(&format!("[{open:?}]"));
            assert!(
                warnings.len() == 1 && warnings[0].contains(open) && warnings[0].contains("127.0.0.1:9695"),
                "{open}"
            );
        }
    }

    #[test]
    fn files_are_looked_for_beside_the_configuration() {
        let text = "[state]\nfile = \"s.toml\"\n[repo]\nfolder = \"repo\"\n[faces.unix]\npath = \"/run/x.sock\"";
        let settings = Configuration::new(from_toml(text).unwrap(), Path::new("/etc/namewire")).unwrap().settings;
        assert_eq!(settings.state.file.as_deref(), Some(Path::new("/etc/namewire/s.toml")));
        assert_eq!(settings.repo.folder.as_deref(), Some(Path::new("/etc/namewire/repo")));
        assert_eq!(settings.faces.unix.path.as_deref(), Some(Path::new("/run/x.sock")));
        for (text, named) in [
            ("[trust]\nlocalhop_rib = \"missing.conf\"", "[trust] localhop_rib: missing.conf"),
            ("[repo]\ncommands = \"any\"\ndata = \"missing.conf\"", "[repo] data: missing.conf"),
        ] {
            let error = Configuration::new(from_toml(text).unwrap(), Path::new("/nowhere")).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
