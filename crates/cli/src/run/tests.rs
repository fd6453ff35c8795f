use super::*;
use clap::Parser;
use namewire_configuration::{
    AdmissionName, EvictionName, FibDesign, PageSize, PolicyChoice, PrefixLookup,
    settings::{Role, StateSync},
};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn parse(line: &str) -> Result<Args, clap::Error> {
    Line::try_parse_from(line.split_whitespace()).map(|line| line.args)
}

#[test]
fn nothing_needs_to_be_said() {
    let args = parse("run").unwrap();
    let settings = args.load().unwrap().settings;
    assert_eq!(settings, Settings::default());
    let udp = settings.faces.udp;
    assert_eq!(udp.addresses(), ["0.0.0.0:6363".parse().unwrap(), "[::]:6363".parse().unwrap()]);
    assert!(udp.listen.is_none());
    assert_eq!(parse("run --no-tcp").unwrap().load().unwrap().settings.faces.tcp.addresses(), []);
}

#[test]
fn everything_can_be_said() {
    let args = parse(
        "run --listen-udp 127.0.0.1:7001 --listen-udp [::1]:7001 --listen-tcp 127.0.0.1:7001 --socket /tmp/x.sock \
         --workers 4 --set router.pin=[0,1,0,1] --set router.busy_poll=50us --set faces.udp.offload=false --face udp://a --face tcp4://192.0.2.1:1 --route /=udp://a --route /a/v=1=udp://b:7 \
         --strategy /=multicast --cs-capacity 64MiB --set cs.packets=100 --set tables.pit_capacity=1000 --set cs.policy=fifo \
         --set cs.admission=filter --set cs.prefix_lookup=all --set tables.pages=2MiB --set pit.role=core \
         --set fib.design=name-trie --set tables.max_lifetime=60000ms --set router.seed=7 --quiet --state /tmp/state \
         --set state.sync=always",
    )
    .unwrap();
    let settings = args.load().unwrap().settings;
    assert_eq!(settings.faces.udp.listen.as_ref().map(Vec::len), Some(2));
    assert_eq!((settings.face.len(), settings.route.len(), settings.router.workers), (2, 2, 4));
    let Settings { router, cs, .. } = &settings;
    assert_eq!((&router.pin[..], router.busy_poll.to_string()), (&[0, 1, 0, 1][..], "50 us".to_owned()));
    assert!(!settings.faces.udp.offload);
    let PolicyChoice { eviction, admission, .. } = cs.policy();
    assert_eq!((eviction, admission), (EvictionName::Fifo, AdmissionName::Filter));
    assert_eq!((cs.prefix_lookup.0, settings.tables.pages.0), (PrefixLookup::All, PageSize::Huge2MiB));
    assert_eq!((settings.fib.design.0, settings.pit.role.0), (FibDesign::NameTrie, Role::Core));
    assert_eq!(settings.route[1].prefix.to_string(), "/a/v=1");
    assert_eq!((cs.capacity(), settings.tables.max_lifetime.0.as_millis()), ((64 << 20, 100), 60_000));
    assert_eq!((settings.state.file, settings.state.sync), (Some("/tmp/state".into()), Choice(StateSync::Always)));
    for bad in [
        "--workers 0",
        "--set router.pin=[a]",
        "--set router.busy_poll=soon",
        "--set tables.max_lifetime=long",
        "--listen-udp 70010",
        "--route /a",
        "--no-udp --listen-udp 1.2.3.4:5",
        "--face a",
        "--set cs.policy=best",
        "--set cs.admission=lru",
        "--set cs.prefix_lookup=some",
        "--set tables.pages=4MiB",
        "--set pit.role=middle",
        "--set fib.design=trie",
        "--set state.sync=2s",
        "--config a --nfd-conf b",
    ] {
        assert!(parse(&format!("run {bad}")).is_err(), "{bad}");
    }
}

#[test]
fn settings_given_by_their_keys_have_the_limits_of_a_file() {
    for bad in ["tables.max_lifetime=0", "tables.pit_capacity=0", "tables.pit_capacity=99999999", "router.busy_poll=2s"]
    {
        let is_refused = parse(&format!("run --set {bad}")).map_or(true, |args| args.load().is_err());
        assert!(is_refused, "{bad}");
    }
}

#[test]
fn links_are_off_until_asked_for() {
    let links = |line: &str| parse(line).unwrap().load().unwrap().settings.faces;
    let FacesSection { websocket, multicast, ethernet, .. } = links("run --interface eth0");
    assert!(!websocket.enabled && multicast.group4().is_none() && multicast.group6().is_none());
    assert!(!ethernet.listen && ethernet.group().is_none());
    let FacesSection { websocket, multicast, ethernet, .. } = links(
        "run --listen-ws 127.0.0.1:9696 --listen-wss [::]:443 --tls-cert c.pem --tls-key k.pem \
         --set faces.websocket.trusted_certificates=t.pem --multicast --ethernet --interface eth*,10.0.0.0/8 --no-interface eth3",
    );
    assert!(websocket.enabled);
    let [plain, secure] = [&websocket.listen, &websocket.listen_tls].map(|addresses| addresses[0].port());
    assert_eq!((plain, secure, websocket.listen.len(), websocket.listen_tls.len()), (9696, 443, 1, 1));
    assert_eq!((websocket.certificate, websocket.key), (Some("c.pem".into()), Some("k.pem".into())));
    assert_eq!(websocket.trusted_certificates, Some("t.pem".into()));
    assert_eq!(multicast.group4().unwrap().to_string(), "224.0.23.170:56363");
    assert_eq!(multicast.group6().unwrap().to_string(), "[ff02::1234]:56363");
    assert_eq!(ethernet.group().unwrap().to_string(), "01:00:5e:00:17:aa");
    assert!(ethernet.listen);
    let texts = |patterns: &[InterfacePattern]| patterns.iter().map(InterfacePattern::to_string).collect::<Vec<_>>();
    for (interfaces, except) in [(multicast.interfaces, multicast.except), (ethernet.interfaces, ethernet.except)] {
        assert_eq!((texts(&interfaces).join(" "), texts(&except).join(" ")), ("eth* 10.0.0.0/8".into(), "eth3".into()));
    }
    for bad in ["--listen-wss [::]:443", "--listen-ws x:9696", "--tls-cert c.pem", "--interface a/b"] {
        assert!(parse(&format!("run {bad}")).is_err(), "{bad}");
    }
}

#[test]
fn options_override_the_file_and_add_to_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("namewire.toml");
    std::fs::write(
        &file,
        "[router]\nworkers = 2\nbusy_poll = \"7 us\"\n[cs]\ncapacity = 1000\npackets = 3\n[faces.tcp]\nenabled = false\n\
         [[face]]\nuri = \"udp://a\"\nmtu = 1000\n[[face]]\nuri = \"udp://b\"\n",
    )
    .unwrap();
    let options = "--workers 3 --cs-capacity 2000 --listen-tcp 127.0.0.1:1 --face udp://a --route /=udp://b";
    let args = parse(&format!("run --config {} {options}", file.display())).unwrap();
    let settings = args.load().unwrap().settings;
    assert_eq!((settings.router.workers, settings.router.busy_poll.to_string()), (3, "7 us".to_owned()));
    assert_eq!(settings.cs.capacity(), (2000, u64::MAX));
    assert!(settings.faces.tcp.enabled);
    let faces: Vec<_> = settings.face.iter().map(|face| (face.uri.to_string(), face.mtu)).collect();
    assert_eq!(faces, [("udp://b".to_owned(), None), ("udp://a".to_owned(), None)]);
    assert_eq!(settings.route.len(), 1);
    std::fs::write(&file, "[router]\nworker = 2").unwrap();
    let failure = args.load().unwrap_err().to_string();
    assert!(failure.contains("namewire.toml: line 2: unknown key \"worker\""), "{failure}");
}

#[test]
fn strategy_choices_split_where_people_mean() {
    let split = |text: &str| parse_strategy_choice(text).map(|(a, b)| (a.to_string(), b.to_string()));
    let whole = |name: &str| format!("/localhost/nfd/strategy/{name}");
    assert_eq!(split("/chat=multicast"), Ok(("/chat".into(), whole("multicast"))));
    assert_eq!(split("/=best-route/v=5"), Ok(("/".into(), whole("best-route/v=5"))));
    assert_eq!(split("/a/v=1=best-route/v=5"), Ok(("/a/v=1".into(), whole("best-route/v=5"))));
    assert_eq!(split("/a/v=1=multicast"), Ok(("/a/v=1".into(), whole("multicast"))));
    let parameters = "asf/v=5/max-timeouts~1/probing-interval~2000";
    assert_eq!(split(&format!("/a/v=1={parameters}")), Ok(("/a/v=1".into(), whole(parameters))));
    assert_eq!(split(&format!("/~a/b~c={parameters}")), Ok(("/~a/b~c".into(), whole(parameters))));
    assert_eq!(split("/~a=multicast"), Ok(("/~a".into(), whole("multicast"))));
    assert_eq!(split("/a=/localhost/nfd/strategy/asf/v=5"), Ok(("/a".into(), whole("asf/v=5"))));
    assert!(split("/a").is_err());
    assert!(split("/a=").is_err());
}
