//! The state file and the disk: the guarantee that an answer gives, and the contents after a full disk or a crash.

use crate::router_process::{NAMEWIRE, Router, eventually, text};
use namewire_client::Client;
use namewire_packet::{FaceId, InterestBuilder, NameBuf, nfd::ControlParameters};
use std::{
    fs,
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Connections that register at the same time.
const CLIENTS: u64 = 8;
/// Acknowledged routes after which the router is killed.
const ENOUGH: u64 = 400;

fn run(directory: &Path, sync: &str) -> Router {
    let state = directory.join("state.toml");
    Router::run(directory, &["--state", state.to_str().unwrap(), "--set", &format!("state.sync={sync}")])
}

fn drops(router: &Router) -> serde_json::Value {
    let status: serde_json::Value = serde_json::from_str(&router.ask(&["status", "--json"])).unwrap();
    status["drops"].clone()
}

/// Registers routes to `face`, one after the other, until the router is gone; the numbers of those that
/// were acknowledged.
async fn register(router: &Router, face: u64, first: u64, acknowledged: &AtomicU64, is_over: &AtomicBool) -> Vec<u64> {
    let uri = format!("unix://{}", router.socket.display());
    let client = Client::connect_to(uri.parse().unwrap()).await.unwrap();
    let mut done = Vec::new();
    for number in (first..).step_by(CLIENTS as usize) {
        let parameters = ControlParameters {
            name: Some(format!("/kept/{number}").parse().unwrap()),
            face_id: Some(FaceId(face)),
            ..ControlParameters::default()
        };
        let answer = client.control("rib", "register", &parameters).await;
        if is_over.load(Ordering::SeqCst) || answer.is_err() {
            break;
        }
        done.push(number);
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    done
}

/// An answer 200 came some time before the route was on disk: what was acknowledged in the last
/// second before a crash was gone.
#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let router = run(directory.path(), "always");
    router.ask(&["face", "create", "udp4://127.0.0.1:7001"]);
    let face = router.face("udp4://127.0.0.1:7001").unwrap();
    let (count, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let killer = {
        let (count, is_over, pid) = (Arc::clone(&count), Arc::clone(&is_over), router.process.id().to_string());
        std::thread::spawn(move || {
            eventually("enough routes are acknowledged", || count.load(Ordering::SeqCst) >= ENOUGH);
            assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
            is_over.store(true, Ordering::SeqCst);
        })
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let registering = (0..CLIENTS).map(|first| register(&router, face, first, &count, &is_over));
    let acknowledged: Vec<u64> = runtime.block_on(futures(registering)).into_iter().flatten().collect();
    killer.join().unwrap();
    drop(router);
    assert!(acknowledged.len() as u64 >= ENOUGH);

    let router = run(directory.path(), "always");
    let routes = router.ask(&["route", "list"]);
    let there: std::collections::HashSet<&str> = routes.split_whitespace().collect();
    let lost: Vec<u64> = acknowledged.into_iter().filter(|n| !there.contains(format!("/kept/{n}").as_str())).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
}

/// Runs all at once, in one thread.
async fn futures<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut all: Vec<_> = all.map(|one| (Box::pin(one), None)).collect();
    std::future::poll_fn(|context| {
        let mut is_ready = true;
        for (one, output) in &mut all {
            if output.is_none() {
                match one.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *output = Some(value),
                    std::task::Poll::Pending => is_ready = false,
                }
            }
        }
        if is_ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    all.into_iter().filter_map(|(_, output)| output).collect()
}

/// After a write that failed the next attempt came five minutes later; nothing counted or showed it.
#[test]
fn a_disk_that_does_not_write_is_said_counted_and_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let (state, in_the_way) = (directory.path().join("state.toml"), directory.path().join("state.toml.new"));
    fs::create_dir(&in_the_way).unwrap();
    let mut router = run(directory.path(), "1s");
    router.ask(&["route", "add", "/a", "udp4://127.0.0.1:7001"]);
    router.wait_for(&["cannot write", "state.toml", "it will be tried again"]);
    eventually("failures are counted, and the file is behind", || {
        let drops = drops(&router);
        drops["state.write-failed"].as_u64() > Some(1) && drops["state.changes-not-on-disk"].as_u64() > Some(0)
    });
    assert!(!state.exists());
    fs::remove_dir(&in_the_way).unwrap();
    eventually("it is written without another change", || {
        fs::read_to_string(&state).is_ok_and(|text| text.contains("\"/a\""))
    });
    eventually("the file is not behind any longer", || drops(&router)["state.changes-not-on-disk"].is_null());
    router.wait_for(&["state.toml is written again"]);
    router.terminate();
}

/// A command whose change cannot be kept is answered so, and the change is in force.
#[test]
fn a_command_that_waits_for_a_disk_that_does_not_write_is_answered_507() {
    let directory = tempfile::tempdir().unwrap();
    let (state, in_the_way) = (directory.path().join("state.toml"), directory.path().join("state.toml.new"));
    let mut router = run(directory.path(), "always");
    router.ask(&["strategy", "set", "/written", "multicast"]);
    assert!(fs::read_to_string(&state).unwrap().contains("/written"), "before the answer");
    fs::create_dir(&in_the_way).unwrap();
    let refused = router.tool(&["strategy", "set", "/not-written", "multicast"]);
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    assert!(why.contains("The change is in force, but the state could not be written") && why.contains("507"), "{why}");
    assert!(router.ask(&["strategy", "list"]).contains("/not-written "), "lists do not wait");
    assert!(drops(&router)["state.answered-before-disk"].as_u64() > Some(0));
    fs::remove_dir(&in_the_way).unwrap();
    // It hastens the next attempt.
    router.ask(&["strategy", "set", "/later", "multicast"]);
    let kept = fs::read_to_string(&state).unwrap();
    assert!(kept.contains("/not-written") && kept.contains("/later"), "{kept}");
    router.terminate();
}

/// Routes of commands that a write of another router, or of a later version, made must not be lost.
#[test]
fn a_file_of_a_later_format_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state.toml");
    let later = "version = 2\nroutes = \"in another way\"\n";
    fs::write(&state, later).unwrap();
    let mut command = Command::new(NAMEWIRE);
    command.args(["run", "--no-udp", "--no-tcp", "--state"]).arg(&state);
    let output = command.arg("--socket").arg(directory.path().join("nfd.sock")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let why = text(&output.stderr);
    assert!(why.contains("has format 2, and this namewire reads format 1: a newer one wrote it"), "{why}");
    assert_eq!(fs::read_to_string(&state).unwrap(), later);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing was put beside it");
}

/// A crash in the middle of a write left its half beside the file for ever if nothing was written later.
#[test]
fn what_a_crash_left_beside_the_file_goes_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let unfinished = directory.path().join("state.toml.new");
    fs::write(&unfinished, "version = 1\n[[strategy]]\nprefix = \"/half").unwrap();
    let mut router = run(directory.path(), "1s");
    assert!(!unfinished.exists() && !router.ask(&["strategy", "list"]).contains("/half"));
    router.wait_for(&["a write of", "that did not end"]);
    router.terminate();
}

/// A file as the change 6180ce6 wrote it is made again, and what is written in its place says the same.
#[test]
fn a_file_of_the_first_format_is_taken_over() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state.toml");
    fs::write(&state, include_str!("../../../configuration/tests/state_format_1.toml")).unwrap();
    let mut router = run(directory.path(), "always");
    let routes = router.ask(&["route", "list"]);
    assert!(["/a/v=1 ", "/b ", "/d "].iter().all(|prefix| routes.contains(prefix)), "{routes}");
    router.ask(&["strategy", "set", "/new", "multicast"]);
    router.terminate();
    let kept = fs::read_to_string(&state).unwrap();
    assert!(["version = 1", "\"/a/v=1\"", "\"/d\"", "mtu = 1400", "\"/new\""].iter().all(|part| kept.contains(part)));
}

/// Answers that wait go out when a reload says that they need not.
#[test]
fn a_reload_changes_when_commands_are_answered() {
    let directory = tempfile::tempdir().unwrap();
    let (file, state) = (directory.path().join("namewire.toml"), directory.path().join("state.toml"));
    let write = |sync: &str| fs::write(&file, format!("[state]\nfile = \"{}\"\nsync = \"{sync}\"\n", state.display()));
    write("1s").unwrap();
    let router = Router::run(directory.path(), &["--config", file.to_str().unwrap()]);
    router.ask(&["strategy", "set", "/first", "multicast"]);
    eventually("the first write", || state.exists());
    fs::create_dir(directory.path().join("state.toml.new")).unwrap();
    router.ask(&["strategy", "set", "/at-once", "multicast"]);
    write("always").unwrap();
    let said = router.hang_up();
    assert!(!said.contains("not before the next start"), "{said}");
    assert!(!router.tool(&["strategy", "set", "/never", "multicast"]).status.success());
    write("1s").unwrap();
    router.hang_up();
    router.ask(&["strategy", "set", "/at-once-again", "multicast"]);
}

/// Asks for the list of routes as soon as the router listens; returns when there is an answer.
fn wait_for_list(socket: &Path) {
    let mut connection = None;
    eventually("it listens", || {
        connection = UnixStream::connect(socket).ok();
        connection.is_some()
    });
    let mut connection = connection.unwrap();
    // It may wait for the end of the start, for most of its lifetime.
    let name: NameBuf = "/localhost/nfd/rib/list".parse().unwrap();
    let interest = InterestBuilder::new(name).lifetime_ms(300_000).can_be_prefix(true).must_be_fresh(true);
    connection.write_all(&interest.build()).unwrap();
    assert!(connection.read(&mut [0; 9000]).unwrap() > 0, "no answer");
}

/// The story: a list that was asked for right after the start was short, because the router was still making again what
/// the state file says.
#[test]
fn a_list_right_after_the_start_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let (state, socket) = (directory.path().join("state.toml"), directory.path().join("nfd.sock"));
    let mut kept = "version = 1\n[[face]]\nuri = \"udp4://127.0.0.1:7001\"\n".to_owned();
    for number in 0..2000 {
        kept += &format!("[[route]]\nprefix = \"/kept/{number}\"\nface = \"udp4://127.0.0.1:7001\"\n");
    }
    fs::write(&state, kept).unwrap();
    let list = |socket: &Path| {
        let uri = format!("unix://{}", socket.display());
        let output = Command::new(NAMEWIRE).args(["--transport", &uri, "route", "list"]).output().unwrap();
        text(&output.stdout).matches("/kept/").count()
    };
    let early = {
        let socket = socket.clone();
        std::thread::spawn(move || {
            wait_for_list(&socket);
            list(&socket)
        })
    };
    let _router = Router::run_at(&socket, &["--state", state.to_str().unwrap(), "--set", "state.sync=always"]);
    assert_eq!(early.join().unwrap(), 2000);
}
