//! `namewire repo` and `namewire run --repo`, with processes and real sockets.

use crate::router_process::{NAMEWIRE, Router, eventually, free_port, lines_of_block, make_identity, namewire};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
};

/// `namewire repo run`; ended when the test is over.
struct RepoProcess {
    process: Child,
    line: String,
}

impl RepoProcess {
    fn start(router: &Router, arguments: &[&str]) -> RepoProcess {
        let mut command = router.command();
        let mut process = command.args(["repo", "run"]).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        RepoProcess { process, line }
    }
}

impl Drop for RepoProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn statistics(router: &Router) -> Value {
    serde_json::from_str(&router.ask(&["repo", "stats", "--json"])).unwrap()
}

fn random_file(path: &Path, size: usize) -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(size as u64);
    let bytes: Vec<u8> = (0..size).map(|_| dice.u8(..)).collect();
    fs::write(path, &bytes).unwrap();
    bytes
}

#[test]
fn a_repository_beside_a_router_survives_both() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let film = random_file(Path::new(&path("film")), 300_000);
    let socket = directory.path().join("nfd.sock");
    let mut router = Router::run(directory.path(), &[]);
    let mut repo = RepoProcess::start(&router, &["--folder", &path("store"), "--nack-missing"]);
    assert_eq!(repo.line, "repository /localhost/repo is running: embedded store with 0 Data\n");
    let stored = router.ask(&["repo", "put", &path("film"), "/example/film"]);
    assert!(stored.starts_with("stored /example/film: 293.0 KiB in 38 packets, "), "{stored}");

    repo.process.kill().unwrap();
    repo.process.wait().unwrap();
    let repo = RepoProcess::start(&router, &["--folder", &path("store"), "--nack-missing"]);
    assert_eq!(repo.line, "repository /localhost/repo is running: embedded store with 38 Data\n");
    router.ask(&["repo", "get", "/example/film", "-o", &path("copy")]);
    assert!(fs::read(path("copy")).unwrap() == film);
    assert_eq!(router.tool(&["repo", "get", "/example/other"]).status.code(), Some(6), "a Nack");

    router.terminate();
    let router = Router::run_at(&socket, &[]);
    eventually("the repository is back", || router.tool(&["repo", "stats"]).status.success());
    // Its own registrations come before those of commands, which may take a moment.
    eventually("the film is served", || {
        router.tool(&["repo", "get", "/example/film", "-o", &path("copy")]).status.success()
    });
    assert!(fs::read(path("copy")).unwrap() == film);
    assert_eq!(router.ask(&["repo", "list", "--limit", "2"]), "/example/film/seg=0\n/example/film/seg=1\n");
    assert_eq!(router.ask(&["repo", "delete", "/example/film"]), "deleted /example/film: 38 packets\n");
    let again = router.tool(&["repo", "delete", "/example/film"]);
    assert_eq!((again.status.code(), &again.stdout[..]), (Some(3), &b""[..]), "{again:?}");
    let statistics = statistics(&router);
    assert_eq!((&statistics["deletes"], &statistics["store"]["records"]), (&38.into(), &0.into()), "{statistics}");
}

#[test]
fn a_repository_inside_a_router_and_its_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    random_file(Path::new(&path("film")), 100_000);
    let mut router = Router::run(directory.path(), &["--repo", &path("store"), "--set", "cs.packets=0"]);
    router.ask(&["repo", "put", &path("film"), "/a/film", "--chunk-size", "1000", "--freshness", "0"]);
    router.ask(&["repo", "put", &path("film"), "/b/film", "--version", "7"]);
    assert_eq!(router.ask(&["repo", "list", "/b", "--json"]).lines().next(), Some("\"/b/film/v=7/seg=0\""));

    // While it runs.
    let checked = namewire(&["repo", "check", "--folder", &path("store"), "--json"]);
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!((&checked["records"], &checked["problem_count"]), (&113.into(), &0.into()));
    let exported = namewire(&["repo", "export", "--folder", &path("store"), &path("a.ndn"), "--prefix", "/a"]);
    assert_eq!(String::from_utf8_lossy(&exported.stdout), "exported 100 Data\n");
    let twice = namewire(&["repo", "export", "--folder", &path("store"), &path("a.ndn")]);
    assert!(!twice.status.success(), "no file is written over");
    assert_eq!(router.ask(&["repo", "delete", "/", "--prefix"]), "deleted /: 113 packets\n");
    assert!(namewire(&["repo", "compact", "--folder", &path("store"), &path("small")]).status.success());
    router.terminate();

    // The archive in a store of another kind, and in the copy.
    for (kind, folder) in [("sqlite", "other"), ("embedded", "small")] {
        let place = ["--store", kind, "--folder", &path(folder)];
        let imported = namewire(&[&["repo", "import", &path("a.ndn")][..], &place].concat());
        assert_eq!(String::from_utf8_lossy(&imported.stdout), "imported 100 Data: 100 new, 0 replaced\n");
        let checked = namewire(&[&["repo", "check"][..], &place].concat());
        assert!(String::from_utf8_lossy(&checked.stdout).starts_with("100 Data, "), "{checked:?}");
    }
    let configuration = path("router.toml");
    let section = "[repo]\nenabled = true\nstore = \"sqlite\"\nfolder = \"other\"\nprefixes = [\"/a\"]\n";
    fs::write(&configuration, section).unwrap();
    let router = Router::run(directory.path(), &["--config", &configuration]);
    router.ask(&["repo", "get", "/a/film", "-o", &path("copy")]);
    assert!(fs::read(path("copy")).unwrap() == fs::read(path("film")).unwrap());
    // SQLite is for one program at a time.
    let second = namewire(&["repo", "check", "-c", &configuration]);
    assert!(String::from_utf8_lossy(&second.stderr).contains("cannot open the store"), "{second:?}");
}

/// The schema `admin` of `interop/lvs_cases.py`: administrators publish below /files.
#[test]
fn a_repository_stores_what_the_schema_lets_keys_sign() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let film = random_file(Path::new(&path("film")), 20_000);
    make_identity(directory.path(), "/admin/ann", Path::new(&path("ann.ndncert")));
    make_identity(directory.path(), "/other/bob", Path::new(&path("bob.ndncert")));
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../security/tests/lvs/admin.tlv");
    fs::copy(schema, path("admin.tlv")).unwrap();
    let section = "[repo]\nenabled = true\nstore = \"memory\"\ndata = \"schema\"\n\
                   [trust]\nschema = \"admin.tlv\"\nanchors = [\"ann.ndncert\"]\n";
    fs::write(path("router.toml"), section).unwrap();
    let router = Router::run(directory.path(), &["--config", &path("router.toml"), "--set", "cs.packets=0"]);
    let put = |identity: &str, name: &str| {
        router
            .tool_of(directory.path(), &["--identity", identity, "repo", "put", &path("film"), name, "--version", "7"])
            .status
            .success()
    };
    assert!(!put("/other/bob", "/files/film"));
    assert!(!put("/admin/ann", "/elsewhere/film"));
    assert!(put("/admin/ann", "/files/film"));
    router.ask(&["repo", "get", "/files/film", "-o", &path("copy")]);
    assert!(fs::read(path("copy")).unwrap() == film);
}

/// A folder outlives its producer, and a later one of the same name is the newest.
#[test]
fn a_repository_keeps_folders_and_streams() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir_all(path("photos/summer")).unwrap();
    for number in 0..200 {
        fs::write(path(&format!("photos/summer/{number}")), format!("photo {number}")).unwrap();
    }
    let film = random_file(Path::new(&path("photos/film")), 300_000);
    fs::write(path("photos/empty"), b"").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", path("photos/link")).unwrap();
    let router = Router::run(directory.path(), &["--repo", &path("store"), "--set", "cs.packets=0"]);
    let put = router.tool(&["repo", "put", &path("photos"), "/alice/photos"]);
    let (told, said) = (String::from_utf8_lossy(&put.stdout), String::from_utf8_lossy(&put.stderr));
    // 202 files and two folders: as many metadata, and a segment of each but 38 of the film.
    assert!(told.starts_with("stored /alice/photos: 202 files, ") && told.contains(" in 445 packets, "), "{put:?}");
    assert!(said.contains("1 links, devices, FIFOs and sockets are not stored"), "{said}");
    router.ask(&["repo", "get", "-r", "/alice/photos", &path("copy")]);
    let is_same = |one: &str| {
        fs::read(path(&format!("copy/{one}"))).unwrap() == fs::read(path(&format!("photos/{one}"))).unwrap()
    };
    assert!((0..200).all(|number| is_same(&format!("summer/{number}"))) && is_same("film") && is_same("empty"));
    assert!(!Path::new(&path("copy/link")).exists());
    router.ask(&["repo", "get", "/alice/photos/film", "-o", &path("one")]);
    assert!(fs::read(path("one")).unwrap() == film);

    fs::remove_file(path("photos/empty")).unwrap();
    fs::write(path("photos/summer/7"), b"another photo").unwrap();
    router.ask(&["repo", "put", "-q", &path("photos"), "/alice/photos"]);
    router.ask(&["repo", "get", "-r", "/alice/photos", &path("later")]);
    assert_eq!(fs::read(path("later/summer/7")).unwrap(), b"another photo");
    assert!(!Path::new(&path("later/empty")).exists());
    router.ask(&["repo", "get", "/alice/photos/summer/7", "-o", &path("one")]);
    assert_eq!(fs::read(path("one")).unwrap(), b"another photo");
    let version = router.tool(&["repo", "put", "--version", "5", &path("photos"), "/alice/photos"]);
    assert_eq!(version.status.code(), Some(2), "{version:?}");

    let mut command = router.command();
    let mut piped = command.args(["repo", "put", "-", "/alice/pipe"]).stdin(Stdio::piped()).spawn().unwrap();
    piped.stdin.take().unwrap().write_all(&film).unwrap();
    assert!(piped.wait().unwrap().success());
    router.ask(&["repo", "get", "/alice/pipe", "-o", &path("one")]);
    assert!(fs::read(path("one")).unwrap() == film);
}

#[test]
fn what_cannot_start_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let none = router.tool(&["repo", "run"]);
    let message = String::from_utf8_lossy(&none.stderr).into_owned();
    assert_eq!((none.status.code(), message.contains("--folder")), (Some(2), true), "{message}");
    let redis = router.tool(&["repo", "run", "--store", "redis", "--redis", "redis://127.0.0.1:1"]);
    let message = String::from_utf8_lossy(&redis.stderr).into_owned();
    assert!(redis.status.code() == Some(1) && message.contains("cannot open the store"), "{message}");
    let unknown = router.tool(&["repo", "stats"]);
    assert_eq!(unknown.status.code(), Some(5), "no such repository: {unknown:?}");
    let message = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(message.contains("namewire repo run --folder PATH"), "{message}");
}

/// The rules of docs/repo.md, as they stand there. From another machine, only keys of /alice may store, and only below
/// /alice.
#[test]
fn a_key_of_another_machine_may_do_what_the_rules_of_the_documentation_say() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let film = random_file(Path::new(&path("film")), 50_000);
    let page = include_str!("../../../docs/repo.md");
    let rules = page.split("```\n").find(|block| block.starts_with("rule\n")).expect("rules");
    fs::write(path("commands.conf"), rules).unwrap();
    for (home, identity, file) in [("a", "/alice", "alice.ndncert"), ("m", "/mallory", "mallory.ndncert")] {
        make_identity(Path::new(&path(home)), identity, Path::new(&path(file)));
    }
    let section =
        "[repo]\nenabled = true\nfolder = \"store\"\nname = \"/example/repo\"\ncommands = \"commands.conf\"\n";
    fs::write(path("router.toml"), section).unwrap();
    let ports = [free_port(), free_port()];
    let [there, here] = ports.map(|port| format!("udp4://127.0.0.1:{port}"));
    let run = |name: &str, port: u16, options: &[&str]| {
        let socket = directory.path().join(name);
        let mut command = Command::new(NAMEWIRE);
        command.args(["run", "--no-tcp", "--listen-udp", &format!("127.0.0.1:{port}"), "--socket"]).arg(&socket);
        Router::start(&socket, command.args(options))
    };
    let routes = [format!("/client={here}"), format!("/alice={here}")];
    let routes = ["--route", &routes[0], "--route", &routes[1]];
    let _far = run("far.sock", ports[0], &[&["--config", &path("router.toml")][..], &routes].concat());
    let routes = [format!("/example={there}"), format!("/alice={there}")];
    let near = run("near.sock", ports[1], &["--route", &routes[0], "--route", &routes[1]]);
    let put = |home: &str, identity: &str, name: &str| {
        let repository = ["--repo", "/example/repo", "--publisher", "/client", "--identity", identity];
        let film = path("film");
        let output = near.tool_of(Path::new(&path(home)), &[&["repo", "put", &film, name][..], &repository].concat());
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let denied = "denied or malformed";
    for (home, identity, name) in [("m", "/mallory", "/alice/film"), ("a", "/alice", "/bob/film")] {
        let (is_stored, message) = put(home, identity, name);
        assert!(!is_stored && message.contains(denied), "{identity} {name}: {message}");
    }
    assert_eq!(put("a", "/alice", "/alice/film"), (true, String::new()));
    let client = ["--repo", "/example/repo", "--publisher", "/client"];
    assert_eq!(near.ask(&[&["repo", "list", "/alice"][..], &client].concat()).lines().count(), 7);
    near.ask(&["repo", "get", "/alice/film", "-o", &path("copy")]);
    assert!(fs::read(path("copy")).unwrap() == film);
}

/// Objects whose commands ended well are there, byte for byte, whenever the repository is killed: here in the middle of
/// a further insertion. `NAMEWIRE_KILL_ROUNDS` sets the number of rounds.
#[test]
fn what_commands_acknowledged_is_there_after_kills() {
    let rounds = std::env::var("NAMEWIRE_KILL_ROUNDS").map_or(10, |rounds| rounds.parse().expect("a number"));
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let router = Router::run(directory.path(), &["--set", "cs.packets=0"]);
    let mut dice = fastrand::Rng::with_seed(1);
    let mut acknowledged: Vec<(String, Vec<u8>)> = Vec::new();
    let is_there = |(name, content): &(String, Vec<u8>)| {
        let got = router.tool(&["repo", "get", "-q", name, "-o", &path("copy")]);
        got.status.success() && fs::read(path("copy")).unwrap() == *content
    };
    for round in 0..rounds {
        let mut repo = RepoProcess::start(&router, &["--folder", &path("store")]);
        let before = acknowledged.len();
        let put = |dice: &mut fastrand::Rng, number: usize| {
            let content = random_file(Path::new(&path("object")), dice.usize(1..200_000));
            let name = format!("/k/{round}/{number}");
            let process = router.command().args(["repo", "put", "-q", &path("object"), &name]).spawn().unwrap();
            (process, (name, content))
        };
        let whole = dice.usize(0..3);
        for number in 0..whole {
            let (mut process, object) = put(&mut dice, number);
            assert!(process.wait().unwrap().success(), "{}", object.0);
            acknowledged.push(object);
        }
        let (mut process, object) = put(&mut dice, whole);
        std::thread::sleep(std::time::Duration::from_millis(dice.u64(..60)));
        repo.process.kill().unwrap();
        repo.process.wait().unwrap();
        // It may have ended before; otherwise it gets no answer any more.
        process.kill().unwrap();
        acknowledged.extend(process.wait().unwrap().success().then_some(object));
        let _repo = RepoProcess::start(&router, &["--folder", &path("store")]);
        for object in &acknowledged[before..] {
            eventually(&object.0, || is_there(object));
        }
    }
    let _repo = RepoProcess::start(&router, &["--folder", &path("store")]);
    acknowledged.iter().for_each(|object| eventually(&object.0, || is_there(object)));
    let checked = namewire(&["repo", "check", "--folder", &path("store")]);
    assert!(checked.status.success(), "{checked:?}");
}

/// Starts a router, stores a film of 100 packets in its repository, and stops it. Returns the bytes of the film.
fn store_a_film(directory: &Path, folder: &str) -> Vec<u8> {
    let film = directory.join("film");
    let content = random_file(&film, 100_000);
    let mut router = Router::run(directory, &["--repo", folder]);
    router.ask(&["repo", "put", film.to_str().unwrap(), "/example/film", "--chunk-size", "1000"]);
    router.terminate();
    content
}

#[test]
fn a_router_whose_repository_is_damaged_starts_forwards_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    store_a_film(directory.path(), &path("store"));
    let records = path("store/records.db");
    let whole = fs::read(&records).unwrap();
    fs::write(&records, &whole[..whole.len() / 2]).unwrap();

    let mut router = Router::run(directory.path(), &["--repo", &path("store")]);
    router.wait_for(&[
        "/localhost/repo is closed, the router goes on",
        "the store is damaged",
        &records,
        "repo import",
    ]);
    let mut server = router.command().args(["pingserver", "-q", "/me"]).spawn().unwrap();
    eventually("it forwards", || router.tool(&["ping", "/me", "--count", "1", "--timeout", "500"]).status.success());
    server.kill().unwrap();
    server.wait().unwrap();
    let said = router.ask(&["repo", "stats"]);
    assert!(said.contains("failure") && said.contains(&records), "{said}");
    let put = router.tool(&["repo", "put", &path("film"), "/example/other"]);
    assert_eq!(put.status.code(), Some(1), "{put:?}");
    router.terminate();

    // The tools that read the store itself, and a repository beside a router.
    for tool in [&["repo", "check"][..], &["repo", "export", &path("all.ndn")], &["repo", "run"]] {
        let refused = namewire(&[tool, &["--folder", &path("store")]].concat());
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{tool:?}: {refused:?}");
        assert!(message.contains("the store is damaged") && message.contains(&records), "{tool:?}: {message}");
    }
}

#[test]
fn what_is_damaged_is_not_served_and_the_rest_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let film = store_a_film(directory.path(), &path("store"));
    let records = path("store/records.db");
    let mut bytes = fs::read(&records).unwrap();
    let content = &film[50_300..50_340];
    // Earlier commits may have left the packet in other places, too.
    let places: Vec<usize> = (0..bytes.len() - 40).filter(|&at| &bytes[at..at + 40] == content).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|&at| bytes[at] ^= 1);
    fs::write(&records, &bytes).unwrap();

    let mut router = Router::run(directory.path(), &["--repo", &path("store"), "--set", "cs.packets=0"]);
    let peek = |segment: usize| {
        router.tool(&["peek", &format!("/example/film/seg={segment}"), "--lifetime", "500ms", "--timeout", "500ms"])
    };
    for segment in [0, 99] {
        eventually("the others are served", || peek(segment).stdout == film[segment * 1000..][..1000]);
    }
    assert_eq!(peek(50).status.code(), Some(5));
    router.wait_for(&["the store is damaged", &records, "repo import"]);
    let statistics = statistics(&router);
    assert!(statistics["refusals"]["read-store-failed"].as_u64() > Some(0), "{statistics}");
    assert!(statistics["store"]["failure"].as_str().unwrap().contains("is not what was written"), "{statistics}");
    router.terminate();

    let checked = namewire(&["repo", "check", "--folder", &path("store")]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&checked.stdout).contains("is not what was written"), "{checked:?}");
    let exported = namewire(&["repo", "export", &path("some.ndn"), "--folder", &path("store")]);
    assert_eq!(exported.status.code(), Some(1));
    let message = String::from_utf8_lossy(&exported.stderr).into_owned();
    assert!(message.contains(&records) && message.contains("some.ndn has what could be read before"), "{message}");
    let imported = namewire(&["repo", "import", &path("some.ndn"), "--folder", &path("new")]);
    assert!(imported.status.success(), "{imported:?}");
}

#[test]
fn a_store_of_an_earlier_program_is_refused_with_the_commands_to_type() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("data.mdb"), [0; 4096]).unwrap();
    let refused = namewire(&["repo", "check", "--folder", directory.path().to_str().unwrap()]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    let export = format!("namewire repo export --folder {}", directory.path().display());
    assert!(message.contains(&export) && message.contains("namewire repo import"), "{message}");
    assert!(!directory.path().join("records.db").exists());
}

/// Another program fills the disk of 64 MiB, which only the router's mount namespace has.
#[test]
#[ignore = "it needs root, to mount a small disk"]
fn a_disk_that_another_program_filled_does_not_stop_deletions() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    random_file(Path::new(&path("film")), 10_000_000);
    fs::create_dir(path("disk")).unwrap();
    let socket = directory.path().join("nfd.sock");
    let run = format!(
        "mount -t tmpfs -o size=64m none {0} && exec {NAMEWIRE} run --no-udp --no-tcp --set cs.packets=0 --socket {1} \
         --repo {0}/store",
        path("disk"),
        socket.display(),
    );
    let router = Router::start(&socket, Command::new("unshare").args(["--mount", "sh", "-c", &run]));
    router.ask(&["repo", "put", &path("film"), "/d/0"]);
    let process = router.process.id();
    let other = |command: &str| {
        let there = format!("cd {} && {command}", path("disk"));
        Command::new("nsenter")
            .args(["--mount", "--target", &process.to_string(), "sh", "-c", &there])
            .output()
            .unwrap()
    };
    assert!(!other("cat /dev/zero > other 2>&1").status.success(), "the disk is full");
    let refused = router.tool(&["repo", "put", &path("film"), "/d/1"]);
    assert!(!refused.status.success(), "{refused:?}");
    assert_eq!(router.ask(&["repo", "delete", "/d/0"]), "deleted /d/0: 1250 packets\n");
    assert!(other("rm other").status.success());
    router.ask(&["repo", "put", &path("film"), "/d/1"]);
    router.ask(&["repo", "get", "/d/1", "-o", &path("copy")]);
    assert!(fs::read(path("copy")).unwrap() == fs::read(path("film")).unwrap());
}

/// A disk of 64 MiB that only the router's process sees.
#[test]
#[ignore = "it needs root, to mount a small disk"]
fn a_full_disk_refuses_answers_and_has_room_after_a_deletion() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let film = random_file(Path::new(&path("film")), 10_000_000);
    fs::create_dir(path("disk")).unwrap();
    let socket = directory.path().join("nfd.sock");
    let run = format!(
        "mount -t tmpfs -o size=64m none {} && exec {NAMEWIRE} run --no-udp --no-tcp --set cs.packets=0 --socket {} --repo {}",
        path("disk"),
        socket.display(),
        path("disk/store")
    );
    let router = Router::start(&socket, Command::new("unshare").args(["--mount", "sh", "-c", &run]));
    let put = |number: usize| router.tool(&["repo", "put", &path("film"), &format!("/d/{number}")]);
    let full = (0..10).map(put).find(|output| !output.status.success()).expect("the disk is full");
    let message = String::from_utf8_lossy(&full.stderr).into_owned();
    assert!(message.contains("the store or its disk is full"), "{message}");
    router.ask(&["repo", "get", "/d/0", "-o", &path("copy")]);
    assert!(fs::read(path("copy")).unwrap() == film);
    assert!(statistics(&router)["refusals"]["store-full"].as_u64() > Some(0));
    for number in [0, 1] {
        assert_eq!(
            router.ask(&["repo", "delete", &format!("/d/{number}")]),
            format!("deleted /d/{number}: 1250 packets\n")
        );
    }
    let again = put(0);
    assert!(again.status.success(), "{again:?}");
}

/// The commands of docs/repo.md, as they stand there.
#[test]
fn the_commands_of_the_documentation_do_what_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let page = include_str!("../../../docs/repo.md");
    let start: Vec<&str> = lines_of_block(page, 0).collect();
    let options = start[0].strip_prefix("namewire run ").expect("a router");
    let socket = directory.path().join("nfd.sock");
    let mut command = crate::router_process::run_command(&socket);
    command.args(options.split(' ')).current_dir(directory.path());
    let router = Router::start(&socket, &mut command);
    let mut said = Vec::new();
    for line in lines_of_block(page, 1) {
        let line = line.replacen("namewire", &format!("{NAMEWIRE} --transport {}", router.uri()), 1);
        let output = Command::new("sh").args(["-c", &line]).current_dir(directory.path()).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        said.push(String::from_utf8(output.stdout).unwrap());
    }
    assert!(said[1].starts_with("stored /example/film: 9.5 MiB in 1250 packets"), "{}", said[1]);
    assert_eq!(said[2], "/example/film/seg=0\n/example/film/seg=1\n");
    assert!(said[5].contains("Data           1250\n"), "{}", said[5]);
    assert_eq!(said[6], "deleted /example/film: 1250 packets\n");
}
