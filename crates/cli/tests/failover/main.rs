//! A link dies in the middle of a fetch: the whole file arrives over another path.
//!
//! Processes of the real binary in network namespaces ([`diamond`]): `namewire get` asks router a, which has two paths
//! to the producer. The cheaper path dies when a part of the file has arrived. The story: the fetch never ended,
//! because router a sent each new Interest first to the dead neighbour.
//!
//! A test asserts that the fetch completes with the right bytes, and checks the state of the face. It prints how long
//! the cut delayed the fetch, and fails only if this is more than a minute.
//!
//! Three of the tests run with all others, the rest with `make system`, because each uses both processors of a small
//! machine for some seconds. `NAMEWIRE_UNDER_TEST` can name a binary other than the one that was built with the tests.

mod diamond;
#[path = "../router_process/mod.rs"]
mod router_process;

use diamond::{Diamond, Router};
use namewire_packet::nfd::FacePersistency;
use router_process::eventually;
use std::time::{Duration, Instant};

/// How the cheap way dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// Router a's interface is down: what is sent fails.
    Link,
    /// Router b's interface is down: router a's has no carrier, and what is sent is lost.
    FarEnd,
    /// Router b ends as a service ends: its port is closed.
    Terminated,
    /// Router b dies.
    Killed,
    /// Router b hangs: nothing says so.
    Hung,
}

impl Cut {
    fn make(self, diamond: &Diamond) {
        match self {
            Cut::Link => diamond.ip('a', "link set ab down"),
            Cut::FarEnd => diamond.ip('b', "link set ab down"),
            Cut::Terminated => diamond.signal('b', "-TERM"),
            Cut::Killed => diamond.signal('b', "-KILL"),
            Cut::Hung => diamond.signal('b', "-STOP"),
        }
    }

    /// Whether anything tells router a.
    fn is_noticed(self) -> bool {
        self != Cut::Hung
    }
}

/// Fetches the file and cuts the cheap way when a fifth of it has come.
fn fetch_through(cut: Cut, persistency: FacePersistency) {
    let Some(diamond) = Diamond::new(persistency) else { return };
    let undisturbed = diamond.fetch().wait();
    let fetch = diamond.fetch();
    fetch.wait_for_share(0.2);
    cut.make(&diamond);
    let cut_at = Instant::now();
    assert!(fetch.share() < 1.0, "the cut came too late");
    fetch.wait();
    println!(
        "{cut:?}, {persistency:?}: the fetch ended {} ms after the cut (a whole one takes {} ms)",
        cut_at.elapsed().as_millis(),
        undisturbed.as_millis()
    );
    let a = diamond.router('a');
    if !cut.is_noticed() {
        return;
    }
    // A process that dies takes datagrams until its last moment, perhaps all that the first fetch sent it. Later ones
    // are refused.
    let eventually_in_use = |what: &str, is_so: &dyn Fn() -> bool| {
        eventually(what, || {
            is_so() || {
                diamond.fetch().wait();
                false
            }
        });
    };
    match persistency {
        FacePersistency::Persistent | FacePersistency::OnDemand => {
            eventually_in_use("the face is closed", &|| !a.has_face(diamond.cheap()));
            let routes = a.ask(&["route", "list"]);
            assert!(!routes.contains(diamond.cheap()), "{routes}");
        }
        FacePersistency::Permanent => {
            let routes = a.ask(&["route", "list"]);
            assert!(routes.contains(diamond.cheap()), "{routes}");
        }
    }
    eventually_in_use("the reason is counted", &|| {
        let status = a.ask(&["status"]);
        ["face-closed.refused", "face-closed.interface-down", "face-closed.socket-failed"]
            .iter()
            .any(|r| status.contains(r))
    });
}

/// The log, the list of faces, the metrics and the page say that a link is down. It prints how long each took.
#[test]
fn a_cut_link_is_seen_in_all_places() {
    let Some(diamond) = Diamond::new(FacePersistency::Permanent) else { return };
    let (a, cheap) = (diamond.router('a'), diamond.cheap());
    assert!(!a.has_face_down(cheap));
    Cut::Link.make(&diamond);
    let cut_at = Instant::now();
    let seen = |place: &str, is_seen: &dyn Fn() -> bool| {
        eventually(place, is_seen);
        println!("{place}: {} ms after the cut", cut_at.elapsed().as_millis());
    };
    let event_of_face = || {
        let event = diamond.observe('a', "/events");
        let at = event.find(&format!("\"remote\":\"{cheap}\"")).unwrap_or_else(|| panic!("{event}"));
        event[at..].split('}').next().unwrap_or_default().to_owned()
    };
    let is_metric = |line: &str| line.starts_with("namewire_face_up{") && line.contains(cheap) && line.ends_with(" 0");
    seen("the list of faces", &|| a.has_face_down(cheap));
    seen("the log", &|| {
        let log = a.ask(&["events", "--area", "faces"]);
        log.lines().any(|line| line.contains("face down") && line.contains(cheap))
    });
    seen("the metrics", &|| diamond.observe('a', "/metrics").lines().any(is_metric));
    seen("the page", &|| event_of_face().contains("\"state\":\"down\""));
    diamond.ip('a', "link set ab up");
    seen("the link that is back", &|| !a.has_face_down(cheap));
}

#[test]
fn a_persistent_face_whose_link_is_cut() {
    fetch_through(Cut::Link, FacePersistency::Persistent);
}

#[test]
#[ignore = "make system"]
fn a_permanent_face_whose_link_is_cut() {
    fetch_through(Cut::Link, FacePersistency::Permanent);
}

#[test]
#[ignore = "make system"]
fn a_persistent_face_whose_link_is_cut_at_the_far_end() {
    fetch_through(Cut::FarEnd, FacePersistency::Persistent);
}

#[test]
#[ignore = "make system"]
fn a_permanent_face_whose_link_is_cut_at_the_far_end() {
    fetch_through(Cut::FarEnd, FacePersistency::Permanent);
}

#[test]
#[ignore = "make system"]
fn a_persistent_face_whose_neighbour_ends() {
    fetch_through(Cut::Terminated, FacePersistency::Persistent);
}

#[test]
fn a_permanent_face_whose_neighbour_dies() {
    fetch_through(Cut::Killed, FacePersistency::Permanent);
}

#[test]
#[ignore = "make system"]
fn a_persistent_face_whose_neighbour_dies() {
    fetch_through(Cut::Killed, FacePersistency::Persistent);
}

#[test]
fn a_persistent_face_whose_neighbour_hangs() {
    fetch_through(Cut::Hung, FacePersistency::Persistent);
}

#[test]
#[ignore = "make system"]
fn a_permanent_face_whose_neighbour_hangs() {
    fetch_through(Cut::Hung, FacePersistency::Permanent);
}

/// Down, up, down: the file comes by whatever way there is, and in the end the cheap one serves again.
#[test]
#[ignore = "make system"]
fn a_permanent_face_whose_link_flaps() {
    let Some(diamond) = Diamond::new(FacePersistency::Permanent) else { return };
    let a = diamond.router('a');
    let began = Instant::now();
    let fetch = diamond.fetch();
    for (share, state) in [(0.15, "down"), (0.4, "up"), (0.6, "down")] {
        fetch.wait_for_share(share);
        diamond.ip('a', &format!("link set ab {state}"));
    }
    fetch.wait();
    println!("flap: the fetch took {} ms", began.elapsed().as_millis());
    diamond.ip('a', "link set ab up");
    let sent = |a: &Router| a.interests_sent_to(diamond.cheap());
    let before = sent(a);
    eventually("the cheap way serves again", || {
        diamond.fetch().wait();
        std::thread::sleep(Duration::from_millis(300));
        sent(a) > before + diamond.segments() / 2
    });
}
