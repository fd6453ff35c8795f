//! A forwarder that answers as a test wants. A real forwarder does not produce such cases on request: several faces
//! with one remote URI, limits of one command, answers that make no sense.

use super::router;
use namewire_packet::{
    DataBuilder, FaceId, Interest, NameBuf,
    nfd::{
        ControlParameters, ControlResponse, FaceCounters, FacePersistency, FaceScope, FaceStatus, LinkType,
        encode_dataset,
    },
    tlv,
};
use std::{
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex},
};

/// What comes back for a request.
pub(crate) enum Reply {
    Dataset(Vec<u8>),
    Command(Box<ControlResponse>),
    /// The connection ends.
    Close,
}

/// A request: `faces/create`, and its parameters if it is a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) verb: String,
    parameters: Option<ControlParameters>,
}

pub(crate) struct FakeForwarder {
    directory: tempfile::TempDir,
    requests: Arc<Mutex<Vec<Request>>>,
}

/// Bytes of the largest request.
const REQUEST_BYTES_MAX: usize = 8800;

impl FakeForwarder {
    pub(crate) fn start(mut answer: impl FnMut(&Request) -> Reply + Send + 'static) -> FakeForwarder {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("nfd.sock")).unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        // Ends with the test's process; the tools are waited for.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(&mut stream.unwrap(), &mut answer, &seen);
            }
        });
        FakeForwarder { directory, requests }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("nfd.sock")
    }

    /// Exit code, standard output, standard error.
    fn nfdc(&self, line: &str) -> (i32, String, String) {
        let output = Command::new(router::link(self.directory.path()))
            .env("NDN_CLIENT_TRANSPORT", format!("unix://{}", self.socket().display()))
            .args(line.split_whitespace())
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    fn commands(&self) -> Vec<(String, ControlParameters)> {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter_map(|request| Some((request.verb.clone(), request.parameters.clone()?))).collect()
    }
}

fn serve(stream: &mut UnixStream, answer: &mut impl FnMut(&Request) -> Reply, seen: &Mutex<Vec<Request>>) {
    let mut buffer = Vec::new();
    loop {
        let mut bytes = [0; REQUEST_BYTES_MAX];
        let count = stream.read(&mut bytes).unwrap_or(0);
        if count == 0 {
            return;
        }
        buffer.extend_from_slice(&bytes[..count]);
        while let Ok(element) = tlv::read_element(&buffer) {
            let length = element.wire.len();
            let name = Interest::parse(element.wire).unwrap().name().to_buf();
            buffer.drain(..length);
            let request = request_of(&name);
            seen.lock().unwrap().push(request.clone());
            let packet = match answer(&request) {
                Reply::Close => return,
                Reply::Command(response) => DataBuilder::new(&name).content(&response.to_wire()).sign_digest(),
                Reply::Dataset(content) => {
                    let mut name = name;
                    name.push_version(1).push_segment(0);
                    DataBuilder::new(&name).freshness_ms(1).final_segment(0).content(&content).sign_digest()
                }
            };
            stream.write_all(&packet).unwrap();
        }
    }
}

fn request_of(name: &NameBuf) -> Request {
    let text = |index: usize| {
        let component = name.as_name().get(index).unwrap();
        String::from_utf8(component.value.to_vec()).unwrap()
    };
    let parameters = name.as_name().get(4).and_then(|component| ControlParameters::decode(component.value).ok());
    Request { verb: format!("{}/{}", text(2), text(3)), parameters }
}

pub(crate) fn face(id: u64, local: &str) -> FaceStatus {
    FaceStatus {
        face_id: FaceId(id),
        uri: "udp4://192.0.2.1:6363".to_owned(),
        local_uri: local.to_owned(),
        expiration_period_ms: None,
        face_scope: FaceScope::NonLocal,
        face_persistency: FacePersistency::Persistent,
        link_type: LinkType::PointToPoint,
        base_congestion_marking_interval_ns: None,
        default_congestion_threshold_bytes: None,
        mtu: None,
        counters: FaceCounters::default(),
        flags: 0,
        port: None,
        state: None,
        path_mtu: None,
        link: Default::default(),
    }
}

fn command(response: ControlResponse) -> Reply {
    Reply::Command(Box::new(response))
}

/// The parameters come back as they are: what a forwarder says that agrees to everything.
fn agree(request: &Request) -> Reply {
    command(ControlResponse::ok(request.parameters.clone().unwrap()))
}

pub(crate) fn refuse(code: u64, text: &str) -> Reply {
    command(ControlResponse::new(code, text))
}

#[test]
fn several_faces_of_one_uri() {
    let two = [face(300, "udp4://192.0.2.2:6363"), face(301, "udp4://192.0.2.3:6363")];
    let forwarder = FakeForwarder::start(move |request| match request.verb.as_str() {
        "faces/query" => Reply::Dataset(encode_dataset(&two)),
        _ => agree(request),
    });
    let message = "Multiple faces match specified remote FaceUri. Re-run the command with a FaceId: \
                   300 (local=udp4://192.0.2.2:6363), 301 (local=udp4://192.0.2.3:6363)\n";
    for line in ["face destroy udp4://192.0.2.1", "route add /a udp4://192.0.2.1"] {
        assert_eq!(forwarder.nfdc(line), (5, String::new(), message.to_owned()), "{line}");
    }
    assert_eq!(forwarder.commands(), [], "nothing was done");
    let (code, out, _) = forwarder.nfdc("route remove /a udp4://192.0.2.1");
    let removed =
        "route-removed prefix=/a nexthop=300 origin=static\nroute-removed prefix=/a nexthop=301 origin=static\n";
    assert_eq!((code, out.as_str()), (0, removed));
}

/// A store of 600 packets and a forwarder that erases 256 at a time.
#[test]
fn erasing_goes_on_while_the_forwarder_stops_short() {
    let store = || {
        let mut stored = 600;
        FakeForwarder::start(move |request| {
            let parameters = request.parameters.clone().unwrap();
            let erased = stored.min(parameters.count.unwrap_or(u64::MAX)).min(256);
            stored -= erased;
            let capacity = (erased == 256).then_some(256);
            let body = ControlParameters { count: Some(erased), capacity, ..parameters };
            command(ControlResponse::ok(body))
        })
    };
    let forwarder = store();
    assert_eq!(forwarder.nfdc("cs erase /a"), (0, "cs-erased prefix=/a count=600\n".to_owned(), String::new()));
    assert_eq!(forwarder.commands().len(), 3);

    let forwarder = store();
    assert_eq!(forwarder.nfdc("cs erase /a count 300").1, "cs-erased prefix=/a count=300\n");
    let counts: Vec<Option<u64>> = forwarder.commands().iter().map(|(_, parameters)| parameters.count).collect();
    assert_eq!(counts, [Some(300), Some(44)]);

    // The limit of the forwarder and of the user at once: nothing is left to ask for.
    let forwarder = store();
    assert_eq!(forwarder.nfdc("cs erase /a count 256").1, "cs-erased prefix=/a count=256\n");
    assert_eq!(forwarder.commands().len(), 1);
}

#[test]
fn a_face_in_the_way() {
    let existing = |uri: &str| ControlParameters {
        face_id: Some(FaceId(300)),
        uri: Some(uri.to_owned()),
        local_uri: Some("udp4://192.0.2.2:6363".to_owned()),
        flags: Some(0),
        face_persistency: Some(0),
        ..ControlParameters::default()
    };
    let conflict = ControlResponse::new(409, "Face with remote URI already exists");
    // Some other face than the one wanted.
    let other = conflict.clone().with_body(existing("udp4://192.0.2.9:6363"));
    let forwarder = FakeForwarder::start(move |_| command(other.clone()));
    let message = "Error 409 when creating face: Face with remote URI already exists\n".to_owned();
    assert_eq!(forwarder.nfdc("face create udp4://192.0.2.1"), (1, String::new(), message));

    let same = conflict.with_body(existing("udp4://192.0.2.1:6363"));
    let forwarder = FakeForwarder::start(move |request| match request.verb.as_str() {
        "faces/create" => command(same.clone()),
        _ => refuse(409, "Invalid properties specified"),
    });
    let message = "Error 409 when updating face: Invalid properties specified\n".to_owned();
    assert_eq!(forwarder.nfdc("face create udp4://192.0.2.1 reliability on"), (1, String::new(), message));
    let (verb, update) = forwarder.commands().pop().unwrap();
    assert_eq!((verb.as_str(), update.flags, update.mask), ("faces/update", Some(2), Some(2)));
    let exists = "face-exists id=300 local=udp4://192.0.2.2:6363 remote=udp4://192.0.2.1:6363 \
                  persistency=persistent reliability=off congestion-marking=off\n";
    assert_eq!(forwarder.nfdc("face create udp4://192.0.2.1"), (0, exists.to_owned(), String::new()));
}

#[test]
fn a_dataset_that_cannot_be_had_spoils_the_report_but_not_the_rest_of_it() {
    let forwarder = FakeForwarder::start(|request| match request.verb.as_str() {
        // Not what channels are made of.
        "faces/channels" => Reply::Dataset(vec![7, 0]),
        "faces/list" => Reply::Dataset(encode_dataset(&[face(300, "udp4://192.0.2.2:6363")])),
        _ => Reply::Dataset(Vec::new()),
    });
    let (code, out, err) = forwarder.nfdc("channel list");
    assert_eq!((code, out.as_str()), (1, "Channels:\n"));
    assert_eq!(err, "Error while collecting status report (500).\n");
    let (code, out, err) = forwarder.nfdc("status report");
    assert_eq!(code, 1);
    // Section 1, error 500; sections 0 and on are empty datasets, and 0 may not be.
    assert_eq!(err, "Error while collecting status report (1000500).\n");
    assert!(out.contains("startTime=19700101T000000\n") && out.contains("Faces:\n  faceid=300 "), "{out}");
    let (_, _, err) = forwarder.nfdc("strategy list");
    assert_eq!(err, "");
}

#[test]
fn answers_that_make_no_sense() {
    let forwarder = FakeForwarder::start(|request| match request.verb.as_str() {
        "faces/query" => Reply::Dataset(encode_dataset(&[face(300, "udp4://192.0.2.2:6363")])),
        "rib/register" => command(ControlResponse::ok(ControlParameters::default())),
        "cs/config" => Reply::Close,
        _ => refuse(403, "authorization rejected"),
    });
    let message = "Error 500 when adding route: Invalid response: Name is required but missing\n".to_owned();
    assert_eq!(forwarder.nfdc("route add /a 300"), (1, String::new(), message));
    let message = "Error 403 when removing route: authorization rejected\n".to_owned();
    assert_eq!(forwarder.nfdc("route remove /a 300"), (1, String::new(), message));
    let message = "socket read error (End of file)\n".to_owned();
    assert_eq!(forwarder.nfdc("cs config"), (1, String::new(), message));
}
