//! A command that a key signed, sent again after a restart.

use crate::router_process::{Router, make_identity, namewire_of};
use namewire_packet::{Data, Interest, lp::LpPacket, nfd::ControlResponse, tlv::element_size};
use std::{
    fs,
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::{Arc, Mutex},
};

/// The elements at the start of `bytes`.
fn elements(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while let Ok(Some(size)) = element_size(bytes)
        && size <= bytes.len()
    {
        found.push(bytes[..size].to_vec());
        bytes = &bytes[size..];
    }
    found
}

/// A packet without link headers.
fn network_packet(element: &[u8]) -> &[u8] {
    LpPacket::parse(element).ok().and_then(|packet| packet.fragment).unwrap_or(element)
}

/// Lets the operator choose a strategy, and returns the very bytes of the command that the router got.
fn overheard(router: &Router, home: &Path, prefix: &str) -> Vec<u8> {
    let tap = home.join("tap.sock");
    let _ = fs::remove_file(&tap);
    let listener = UnixListener::bind(&tap).unwrap();
    let (socket, heard) = (router.socket.clone(), Arc::new(Mutex::new(Vec::new())));
    let hears = Arc::clone(&heard);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let router = UnixStream::connect(&socket).unwrap();
            let (mut from, mut to) = (router.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            let (mut from, mut to, mut bytes) = (client, router, [0; 4096]);
            while let Ok(length @ 1..) = from.read(&mut bytes) {
                hears.lock().unwrap().extend_from_slice(&bytes[..length]);
                to.write_all(&bytes[..length]).unwrap();
            }
        }
    });
    let tap = format!("unix://{}", tap.display());
    let line = ["--transport", &tap, "--identity", "/operator", "strategy", "set", prefix, "multicast"];
    let output = namewire_of(home).args(line).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let heard = heard.lock().unwrap();
    let is_command = |element: &Vec<u8>| {
        let interest = Interest::parse(network_packet(element));
        interest.is_ok_and(|interest| interest.name().to_string().starts_with("/localhost/nfd/strategy-choice/set/"))
    };
    elements(&heard).into_iter().find(is_command).expect("a command")
}

/// The answer to these bytes on a connection of their own.
fn answer(router: &Router, command: &[u8]) -> ControlResponse {
    let mut stream = UnixStream::connect(&router.socket).unwrap();
    stream.write_all(command).unwrap();
    let mut received = Vec::new();
    loop {
        if let [element, ..] = elements(&received).as_slice() {
            return ControlResponse::decode(Data::parse(network_packet(element)).unwrap().content()).unwrap();
        }
        let mut bytes = [0; 4096];
        let length = stream.read(&mut bytes).unwrap();
        assert!(length > 0, "no answer");
        received.extend_from_slice(&bytes[..length]);
    }
}

/// The story: an eavesdropper recorded a command. The router restarted. Within two minutes of the command, the
/// eavesdropper sent it again, and the router carried it out again.
#[test]
fn a_command_does_not_pass_again_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    make_identity(home, "/operator", &home.join("keys/operator.ndncert"));
    let file = home.join("namewire.toml");
    let trust = "[trust]\npeer_credentials = false\n[[trust.authorize]]\n\
                 certificate = \"keys/operator.ndncert\"\nprivileges = [\"strategy-choice\"]\n";
    for (state, is_killed, why) in [
        (format!("[state]\nfile = \"{}\"\n", home.join("state.toml").display()), false, "was here before"),
        (format!("[state]\nfile = \"{}\"\n", home.join("state.toml").display()), true, "was here before"),
        (String::new(), false, "signed before this router started, so it may have been carried out then"),
    ] {
        fs::write(&file, format!("{state}{trust}")).unwrap();
        let start = || Router::run(home, &["--config", file.to_str().unwrap()]);
        let mut router = start();
        let command = overheard(&router, home, "/overheard");
        assert_eq!(answer(&router, &command).code, 403, "again, without a restart");
        if is_killed {
            router.signal("-KILL");
            router.process.wait().unwrap();
        } else {
            router.terminate();
        }
        drop(router);

        let mut router = start();
        let again = answer(&router, &command);
        assert!(again.code == 403 && again.text.contains(why), "{again:?}");
        let strategies = ["--identity", "/operator", "strategy", "set", "/new", "multicast"];
        let new = router.tool_of(home, &strategies);
        assert!(new.status.success(), "{new:?}");
        router.terminate();
        drop(router);
        assert_eq!(answer(&start(), &command).code, 403, "at the second restart");
    }
}
