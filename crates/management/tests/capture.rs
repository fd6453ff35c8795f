//! Commands of `capture`, over a router that only records the requests of management.

use namewire_management::{CapturePlane, CaptureRefusal, PeerCredentials, Subject, Times, TrustConfig, WantedCapture};
use namewire_packet::{
    FaceId, InterestBuilder, Name, NameBuf, Nonce,
    nfd::{ControlParameters, FaceUri},
    tlv::types::SEQUENCE_NUM_COMPONENT,
};
use namewire_testbed::management::{Bench, LOCAL_FACE, UDP_FACE, for_prefix, local_face, signed_command};
use std::sync::{Arc, Mutex};

/// An application of another user.
const STRANGER: FaceId = FaceId(310);

type Asked = Arc<Mutex<Vec<String>>>;

struct Plane(Asked);

impl Plane {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

fn name() -> NameBuf {
    "/localhost/nfd/capture/piece/7".parse().unwrap()
}

impl CapturePlane for Plane {
    fn start(&mut self, _: Times, client: FaceId, wanted: WantedCapture) -> Result<NameBuf, CaptureRefusal> {
        let WantedCapture { subject, one_in, snap_bytes } = wanted;
        if subject == Subject::Face(client) {
            return Err(CaptureRefusal::OwnFace(client));
        }
        let subject = match subject {
            Subject::Face(face) => face.to_string(),
            Subject::FacesOf(FaceUri::Dev(name)) => name,
            Subject::Decisions(prefix) => format!("decisions under {prefix}"),
            other => format!("{other:?}"),
        };
        self.note(format!("{client} starts {subject}, one in {one_in}, {snap_bytes:?}"));
        Ok(name())
    }

    fn add(&mut self, client: FaceId, capture: Name<'_>, face: FaceId) -> Result<(), CaptureRefusal> {
        self.note(format!("{client} adds {face} to {capture}"));
        Ok(())
    }

    fn stop(&mut self, client: FaceId, capture: Name<'_>) -> Result<(), CaptureRefusal> {
        self.note(format!("{client} stops {capture}"));
        if capture == name().as_name() { Ok(()) } else { Err(CaptureRefusal::NoCapture) }
    }

    fn fetch(&mut self, _: Times, client: FaceId, capture: Name<'_>, sequence: u64) -> bool {
        self.note(format!("{client} fetches {sequence} of {capture}"));
        client == LOCAL_FACE
    }
}

fn bench() -> (Bench, Asked) {
    let (mut bench, asked) = (Bench::new(), Asked::default());
    bench.router.capture_plane = Some(Box::new(Plane(Arc::clone(&asked))));
    let mut stranger = local_face();
    (stranger.face, stranger.credentials) = (STRANGER, None);
    bench.add_face(stranger);
    (bench, asked)
}

fn code(bench: &mut Bench, from: FaceId, verb: &str, parameters: &ControlParameters) -> (u64, String) {
    let command = signed_command(&format!("capture/{verb}"), parameters);
    bench.send_from(from, &command);
    let answer = bench.answer();
    (answer.code, answer.text)
}

fn parameters(face: Option<u64>, local_uri: Option<&str>) -> ControlParameters {
    let face_id = face.map(FaceId);
    ControlParameters { face_id, local_uri: local_uri.map(str::to_owned), ..ControlParameters::default() }
}

#[test]
fn only_the_operator_captures() {
    let (mut bench, asked) = bench();
    for (verb, parameters) in [
        ("start", parameters(Some(UDP_FACE.0), None)),
        ("start", parameters(None, Some("dev://eth0"))),
        ("start", ControlParameters { count: Some(10), mtu: Some(64), ..parameters(None, None) }),
        ("start", for_prefix("/a/b")),
        ("add", ControlParameters { name: Some(name()), ..parameters(Some(300), None) }),
        ("stop", ControlParameters { name: Some(name()), ..parameters(None, None) }),
    ] {
        let (code_of_stranger, text) = code(&mut bench, STRANGER, verb, &parameters);
        assert_eq!(code_of_stranger, 403, "{verb}: {text}");
        assert!(text.contains("capture needs a trusted signature"), "{text}");
        assert_eq!(code(&mut bench, LOCAL_FACE, verb, &parameters).0, 200, "{verb}");
    }
    let (of, udp) = (LOCAL_FACE, UDP_FACE);
    assert_eq!(
        *asked.lock().unwrap(),
        [
            format!("{of} starts {udp}, one in 1, None"),
            format!("{of} starts eth0, one in 1, None"),
            format!("{of} starts AllFaces, one in 10, Some(64)"),
            format!("{of} starts decisions under /a/b, one in 1, None"),
            format!("{of} adds 300 to {}", name()),
            format!("{of} stops {}", name()),
        ]
    );
}

/// The story: a group that may command could capture the packets of all, which was meant for the operator alone.
#[test]
fn members_of_allowed_groups_command_but_do_not_capture() {
    let mut bench = Bench::with_trust(TrustConfig { allowed_gids: vec![900], ..TrustConfig::default() });
    bench.router.capture_plane = Some(Box::new(Plane(Asked::default())));
    let mut member = local_face();
    member.face = STRANGER;
    member.credentials = Some(PeerCredentials { uid: 4000, gid: 900, groups: Vec::new(), pid: 0 });
    bench.add_face(member);
    let (code_of_member, text) = code(&mut bench, STRANGER, "start", &parameters(None, None));
    assert_eq!(code_of_member, 403, "{text}");
    assert!(text.contains("(uid 4000, gid 900) is neither root nor the router's user"), "{text}");
    bench.send_from(STRANGER, &signed_command("fib/add-nexthop", &for_prefix("/x")));
    assert_eq!(bench.answer().code, 200);
}

#[test]
fn invalid_parameters_are_refused() {
    let (mut bench, asked) = bench();
    let other = ControlParameters { name: Some("/other".parse().unwrap()), ..parameters(None, None) };
    for (verb, parameters, expected) in [
        ("start", parameters(Some(UDP_FACE.0), Some("dev://eth0")), 400),
        ("start", parameters(None, Some("udp4://192.0.2.1:6363")), 400),
        ("start", ControlParameters { count: Some(0), ..parameters(None, None) }, 400),
        ("start", ControlParameters { mtu: Some(8801), ..parameters(None, None) }, 400),
        ("start", ControlParameters { cost: Some(1), ..parameters(None, None) }, 400),
        ("start", parameters(Some(LOCAL_FACE.0), None), 409),
        ("add", parameters(Some(300), None), 400),
        ("stop", parameters(None, None), 400),
        ("stop", other, 410),
    ] {
        assert_eq!(code(&mut bench, LOCAL_FACE, verb, &parameters).0, expected, "{verb} {parameters:?}");
    }
    bench.router.capture_plane = None;
    assert_eq!(code(&mut bench, LOCAL_FACE, "start", &parameters(None, None)).0, 503);
    assert_eq!(asked.lock().unwrap().len(), 1);
}

/// An answer, even a refusal, would satisfy the pending Interest of the client that the piece belongs to.
#[test]
fn requests_for_pieces_go_to_the_router_and_get_no_answer_here() {
    let (mut bench, asked) = bench();
    let mut piece = name();
    piece.push_typed_nni(SEQUENCE_NUM_COMPONENT, 3);
    let request = |name: NameBuf| InterestBuilder::new(name).nonce(Nonce([1, 2, 3, 4])).build();
    for from in [LOCAL_FACE, STRANGER] {
        bench.send_from(from, &request(piece.clone()));
        assert_eq!(bench.effects, []);
    }
    bench.send_from(LOCAL_FACE, &request(name()));
    assert_eq!(bench.effects, [], "not a piece");
    let of = |from: FaceId| format!("{from} fetches 3 of {}", name());
    assert_eq!(*asked.lock().unwrap(), [of(LOCAL_FACE), of(STRANGER)]);
    assert_eq!(bench.management.counters().not_kept, 2);
}
