//! One router connects to another: by `ws`, by `wss`, and again after a failure.

use crate::application::{Application, eventually, name, start, start_with};
use namewire_packet::{
    FaceId,
    nfd::{ControlParameters, ControlResponse, FaceUri},
};
use namewire_router::RouterHandle;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    thread,
};

/// A certificate and its key.
#[derive(Clone)]
struct TlsFiles {
    certificate: PathBuf,
    key: PathBuf,
}

fn listening(address: &str, tls: Option<TlsFiles>) -> (RouterHandle, tempfile::TempDir, String) {
    let address: SocketAddr = address.parse().unwrap();
    let (router, directory) = start_with(2, |config| {
        let websocket = &mut config.settings.faces.websocket;
        websocket.enabled = true;
        (websocket.listen, websocket.listen_tls) = (Vec::new(), Vec::new());
        match tls {
            None => websocket.listen.push(address),
            Some(files) => {
                websocket.listen_tls.push(address);
                (websocket.certificate, websocket.key) = (Some(files.certificate), Some(files.key));
            }
        }
    });
    let uri = router.websocket()[0].to_string();
    (router, directory, uri)
}

fn create(operator: &mut Application, uri: &str, persistency: u64) -> ControlResponse {
    let (uri, face_persistency) = (Some(uri.to_owned()), Some(persistency));
    operator.command("/faces/create", ControlParameters { uri, face_persistency, ..Default::default() })
}

fn route(operator: &mut Application, prefix: &str, face_id: Option<FaceId>) {
    operator.succeed("/rib/register", ControlParameters { name: Some(name(prefix)), face_id, ..Default::default() });
}

fn exchange(consumer: &mut Application, producer: &RouterHandle, prefix: &str) {
    let mut producer = Application::connect(producer);
    producer.register(prefix);
    let serving = thread::spawn(move || producer.serve(50, &[3; 8000]));
    for index in 0..50 {
        let reply = consumer.express(&format!("{prefix}/{}/{index}", fastrand::u32(..))).expect("Data");
        assert_eq!(reply.data().content(), [3; 8000]);
    }
    serving.join().unwrap();
}

/// A certificate for `localhost` that is its own issuer.
fn certificate(directory: &Path) -> TlsFiles {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = TlsFiles { certificate: directory.join("certificate.pem"), key: directory.join("key.pem") };
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    files
}

#[test]
fn a_permanent_face_calls_again_and_keeps_its_routes() {
    let (far, _far_directory, uri) = listening("127.0.0.1:0", None);
    let (near, _near_directory) = start(2);
    let mut operator = Application::connect(&near);
    let created = create(&mut operator, &uri, 2);
    assert_eq!(created.code, 200, "{}", created.text);
    let body = created.body.unwrap();
    assert_eq!(body.uri.as_deref(), Some(uri.as_str()));
    assert!(body.local_uri.unwrap().starts_with("wsclient://127.0.0.1:"));
    assert_eq!(create(&mut operator, &uri, 2).code, 409);
    route(&mut operator, "/far", body.face_id);
    exchange(&mut operator, &far, "/far");
    let address = uri.strip_prefix("ws://").unwrap().to_owned();
    far.stop();
    let (far, _far_directory, _) = listening(&address, None);
    eventually("the far router has its face again", || {
        Application::connect(&far).faces().iter().any(|face| face.uri.starts_with("wsclient://"))
    });
    exchange(&mut operator, &far, "/far");
    let faces = operator.faces();
    assert_eq!(faces.iter().find(|face| face.uri == uri).unwrap().face_id, body.face_id.unwrap());
}

#[test]
fn over_tls_the_server_must_be_who_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let files = certificate(directory.path());
    let (far, _far_directory, uri) = listening("127.0.0.1:0", Some(files.clone()));
    let FaceUri::WebSocketUrl(url) = uri.parse().unwrap() else { panic!("{uri}") };
    let by_name = format!("wss://localhost:{}/ndn", url.port);
    let (near, _near_directory) =
        start_with(2, |config| config.settings.faces.websocket.trusted_certificates = Some(files.certificate));
    let mut operator = Application::connect(&near);
    let created = create(&mut operator, &by_name, 0);
    assert_eq!(created.code, 200, "{}", created.text);
    let body = created.body.unwrap();
    assert_eq!(body.uri.as_deref(), Some(by_name.as_str()));
    route(&mut operator, "/far", body.face_id);
    exchange(&mut operator, &far, "/far");
    let far_faces = Application::connect(&far).faces();
    let local = far_faces.iter().find(|face| face.uri.starts_with("wsclient://")).unwrap().local_uri.clone();
    assert_eq!(local, uri);

    // Another name than the certificate's, and an issuer that is not trusted.
    let refused = create(&mut operator, &uri, 0);
    assert_eq!(refused.code, 504);
    assert!(refused.text.contains("certificate"), "{}", refused.text);
    let strangers = tempfile::tempdir().unwrap();
    let others = certificate(strangers.path()).certificate;
    let (suspicious, _suspicious_directory) =
        start_with(1, |config| config.settings.faces.websocket.trusted_certificates = Some(others));
    assert_eq!(create(&mut Application::connect(&suspicious), &by_name, 0).code, 504);
    // A plain connection to a TLS port.
    assert_eq!(create(&mut operator, &format!("ws://localhost:{}", url.port), 0).code, 504);
}

#[test]
fn calls_that_cannot_succeed_are_refused_with_a_reason() {
    let (near, _directory) = start(1);
    let mut operator = Application::connect(&near);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(create(&mut operator, &format!("ws://{closed}"), 0).code, 504);
    assert_eq!(create(&mut operator, &format!("ws://{closed}"), 1).code, 406, "on-demand");
    assert_eq!(create(&mut operator, "ws://localhost", 0).code, 400, "no port");
    assert_eq!(create(&mut operator, "wsclient://127.0.0.1:9", 0).code, 400);
    let mtu = ControlParameters { uri: Some(format!("ws://{closed}")), mtu: Some(1000), ..Default::default() };
    assert_eq!(operator.command("/faces/create", mtu).code, 406);
}
