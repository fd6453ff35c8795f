//! Readvertise over real sockets: an application that answers as NLSR does.

use crate::application::{Application, name, start_with};
use namewire_packet::{
    DataBuilder,
    lp::LpHeaders,
    nfd::{ControlParameters, ControlResponse, origin},
};

/// Takes one command as the routing daemon; returns its verb and prefix, and the cost if it has one.
///
/// The answers are those of NLSR bb59d40: 205 to `register`, because the Flags that ndn-cxx assumes mean to NLSR that
/// it should save the prefix.
fn take_command(daemon: &mut Application) -> String {
    let packet = daemon.receive().expect("a command");
    let interest = packet.interest();
    assert!(interest.parameters_digest_is_valid(), "signed");
    let asked = interest.name();
    let parameters = ControlParameters::decode(asked.get(4).expect("parameters").value).expect("parameters");
    let prefix = parameters.name.clone().expect("a Name");
    let cost = parameters.cost.map(|cost| format!(" {cost}")).unwrap_or_default();
    let code = if cost.is_empty() { 200 } else { 205 };
    let content = ControlResponse::new(code, "OK").with_body(parameters).to_wire();
    let data = DataBuilder::new(asked).content(&content).sign_digest();
    let headers = LpHeaders { pit_token: packet.headers.pit_token, ..LpHeaders::default() };
    if headers.is_empty() {
        daemon.send(&data)
    } else {
        daemon.send_with(&headers, &data)
    }
    format!("{} {prefix}{cost}", asked.prefix(4))
}

#[test]
fn a_routing_daemon_is_told_of_client_routes() {
    for workers in [1, 3] {
        let (router, _directory) = start_with(workers, |config| config.settings.rib.readvertise_nlsr = true);
        let (mut client, mut daemon) = (Application::connect(&router), Application::connect(&router));
        let register = |client: &mut Application, prefix: &str, cost: u64| {
            let (name, origin, cost) = (Some(name(prefix)), Some(origin::CLIENT), Some(cost));
            client.succeed("/rib/register", ControlParameters { name, origin, cost, ..Default::default() });
        };
        register(&mut client, "/early", 37);
        let parameters = ControlParameters {
            name: Some(name("/localhost/nlsr")),
            face_id: Some(daemon.register("/daemon")),
            ..Default::default()
        };
        // Another connection, because commands may reach the daemon's own before the answer.
        Application::connect(&router).succeed("/rib/register", parameters);
        assert_eq!(take_command(&mut daemon), "/localhost/nlsr/rib/register /early 37", "{workers} workers");
        for number in 0..70 {
            register(&mut client, &format!("/late/{number}"), number);
            assert_eq!(take_command(&mut daemon), format!("/localhost/nlsr/rib/register /late/{number} {number}"));
        }
        // All routes go with the client.
        drop(client);
        let mut withdrawn: Vec<String> = (0..71).map(|_| take_command(&mut daemon)).collect();
        withdrawn.sort();
        withdrawn.dedup();
        assert_eq!(withdrawn.len(), 71, "each once");
        assert!(withdrawn.iter().all(|command| command.starts_with("/localhost/nlsr/rib/unregister ")));
        assert!(daemon.receive_within(std::time::Duration::from_millis(100)).is_none(), "nothing else");
        assert_eq!(daemon.drops("management.readvertise-failed"), 0, "205 is a success");
    }
}
