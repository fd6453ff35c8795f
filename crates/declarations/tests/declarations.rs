//! Declared faces, routes and strategies in a running router without any socket for applications.

use namewire_configuration::{Declarations, Settings, from_toml, state_file, units::Bytes};
use namewire_declarations::{Due, Keeper, Problem};
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{ControlParameters, FacePersistency, origin},
};
use namewire_router::{
    Router, RouterHandle,
    operator::{CsChange, Operator, OperatorError},
};

fn router() -> RouterHandle {
    Router::start(&Settings::listening_nowhere().into()).unwrap()
}

fn declared(text: &str) -> Declarations {
    Declarations::of(&from_toml(text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

fn route(prefix: &str, face: &str) -> String {
    format!("[[route]]\nprefix = \"{prefix}\"\nface = \"{face}\"\n")
}

/// Routes as `prefix face-uri cost`.
async fn routes(operator: &Operator) -> Vec<String> {
    let inventory = operator.inventory().await.unwrap();
    let uri = |face: FaceId| inventory.faces.iter().find(|other| other.face == face).unwrap().remote.to_string();
    inventory.routes.iter().map(|route| format!("{} {} {}", route.prefix, uri(route.face), route.cost)).collect()
}

async fn faces(operator: &Operator) -> Vec<String> {
    let inventory = operator.inventory().await.unwrap();
    inventory.faces.iter().map(|face| face.remote.to_string()).collect()
}

async fn apply(keeper: &mut Keeper, text: &str) {
    let problems = keeper.apply(declared(text)).await.unwrap();
    assert_eq!(problems, <[Problem; 0]>::default(), "{text}");
}

/// Tries again what is missing.
async fn retry(keeper: &mut Keeper) -> Vec<Problem> {
    let missing = Due { missing: true, ..Due::default() };
    let addresses = keeper.names(missing).await.unwrap().look_up().await;
    keeper.retry(&addresses).await.unwrap()
}

#[tokio::test]
async fn two_spellings_of_one_address_are_one_face_until_both_are_gone() {
    let router = router();
    let operator = router.operator();
    let mut keeper = Keeper::new(operator.clone());
    let (a, b) = (route("/a", "udp://127.0.0.1:7001"), route("/b", "udp4://127.0.0.1:7001"));
    apply(&mut keeper, &(a.clone() + &b)).await;
    assert_eq!(faces(&operator).await, ["udp4://127.0.0.1:7001"]);
    apply(&mut keeper, &a).await;
    assert_eq!(routes(&operator).await, ["/a udp4://127.0.0.1:7001 0"]);
    apply(&mut keeper, "").await;
    assert_eq!(faces(&operator).await, <[String; 0]>::default());
    router.stop();
}

#[tokio::test]
async fn what_is_not_said_any_longer_gets_its_default() {
    let router = router();
    let operator = router.operator();
    let mut keeper = Keeper::new(operator.clone());
    let face = "[[face]]\nuri = \"udp4://127.0.0.1:7001\"\n".to_owned();
    apply(
        &mut keeper,
        &(face.clone() + "mtu = 1000\npersistency = \"persistent\"\n" + &route("/a", "udp4://127.0.0.1:7001")),
    )
    .await;
    let before = operator.inventory().await.unwrap().faces.remove(0);
    assert_eq!((before.mtu, before.persistency), (Some(1000), FacePersistency::Persistent));
    apply(&mut keeper, &face).await;
    let after = operator.inventory().await.unwrap().faces.remove(0);
    assert_eq!((after.mtu, after.persistency, after.face), (Some(8800), FacePersistency::Permanent, before.face));
    router.stop();
}

/// An nfd.conf with `unicast_mtu 1300` changed nothing: it was ignored, and each face had to be given its MTU by hand.
/// A face whose declaration gives no MTU any longer has the one of the configuration again, and a state file names
/// only what differs from it.
#[tokio::test]
async fn the_configuration_has_the_mtu_of_udp_faces_that_give_none() {
    let mut settings = Settings::listening_nowhere();
    settings.faces.udp.mtu = Bytes(1300);
    let router = Router::start(&settings.into()).unwrap();
    let operator = router.operator();
    let mut keeper = Keeper::new(operator.clone());
    let face = "[[face]]\nuri = \"udp4://127.0.0.1:7001\"\n".to_owned();
    let mtu = async || operator.inventory().await.unwrap().faces.remove(0).mtu;
    apply(&mut keeper, &face).await;
    assert_eq!(mtu().await, Some(1300));
    apply(&mut keeper, &(face.clone() + "mtu = 1000\n")).await;
    assert_eq!(mtu().await, Some(1000));
    apply(&mut keeper, &face).await;
    assert_eq!(mtu().await, Some(1300));

    // Faces that others made: as configured, less, and more.
    apply(&mut keeper, "").await;
    for (port, mtu) in [(7001, None), (7002, Some(1000)), (7003, Some(8800))] {
        let uri = Some(format!("udp4://127.0.0.1:{port}"));
        let create = ControlParameters { uri, mtu, face_persistency: Some(2), ..ControlParameters::default() };
        let made = operator.command("faces", "create", &create).await.unwrap();
        assert_eq!(made.mtu, mtu.or(Some(1300)));
    }
    let others = keeper.others(&operator.inventory().await.unwrap());
    let mut kept: Vec<_> = others.faces.iter().map(|face| (face.uri.to_string(), face.mtu)).collect();
    kept.sort();
    let expected = [("7001", None), ("7002", Some(1000)), ("7003", Some(8800))];
    assert_eq!(kept, expected.map(|(port, mtu)| (format!("udp4://127.0.0.1:{port}"), mtu)));
    router.stop();
}

#[tokio::test]
async fn what_was_lost_comes_back_with_the_next_declaration() {
    let router = router();
    let operator = router.operator();
    let mut keeper = Keeper::new(operator.clone());
    let text = route("/a", "udp4://127.0.0.1:7001") + "[[strategy]]\nprefix = \"/a\"\nstrategy = \"multicast\"\n";
    apply(&mut keeper, &text).await;
    let face = operator.inventory().await.unwrap().faces[0].face;
    let by_face = ControlParameters { face_id: Some(face), ..ControlParameters::default() };
    operator.command("faces", "destroy", &by_face).await.unwrap();
    let by_name = ControlParameters { name: Some("/a".parse().unwrap()), ..ControlParameters::default() };
    operator.command("strategy-choice", "unset", &by_name).await.unwrap();
    assert_eq!(routes(&operator).await, <[String; 0]>::default());
    retry(&mut keeper).await;
    assert_eq!(faces(&operator).await, <[String; 0]>::default(), "nothing is pending: what was destroyed stays away");
    apply(&mut keeper, &text).await;
    assert_eq!(routes(&operator).await, ["/a udp4://127.0.0.1:7001 0"]);
    let strategies = operator.inventory().await.unwrap().strategies;
    assert!(strategies.iter().any(|choice| choice.name.to_string() == "/a"), "{strategies:?}");
    router.stop();
}

#[tokio::test]
async fn refusals_are_final_and_failures_are_not() {
    let router = router();
    let mut keeper = Keeper::new(router.operator());
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let text = route("/mtu", "tcp://127.0.0.1:1")
        .replace("[[route]]", "[[face]]\nuri = \"tcp://127.0.0.1:1\"\nmtu = 1000\n[[route]]")
        + &route("/far", &format!("tcp://{address}"))
        + &route("/name", "udp://no-such-host.invalid:1");
    let problems = keeper.apply(declared(&text)).await.unwrap();
    let kinds: Vec<(bool, bool)> =
        problems.iter().map(|problem| (problem.message.contains("MTU"), problem.is_postponed)).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == (true, false)).count(), 1, "{problems:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == (false, true)).count(), 2, "{problems:?}");
    assert!(keeper.has_pending());
    assert_eq!(keeper.pending().routes.len(), 3);
    // The keeper does not ask again for what management refused.
    let problems = retry(&mut keeper).await;
    assert!(problems.iter().all(|problem| problem.is_postponed), "{problems:?}");
    let _open = std::net::TcpListener::bind(address).unwrap();
    retry(&mut keeper).await;
    assert_eq!(keeper.pending().routes.len(), 2);
    router.stop();
}

/// The keeper leaves alone what others made, and a state file holds only that.
#[tokio::test]
async fn the_works_of_others_are_told_apart() {
    let router = router();
    let operator = router.operator();
    let mut keeper = Keeper::new(operator.clone());
    let own = "[[strategy]]\nprefix = \"/\"\nstrategy = \"multicast\"\n";
    apply(&mut keeper, &(route("/own", "udp4://127.0.0.1:7001") + own)).await;
    let face = operator.inventory().await.unwrap().faces[0].face;
    let theirs = ControlParameters {
        name: Some("/theirs".parse().unwrap()),
        face_id: Some(face),
        origin: Some(origin::CLIENT),
        cost: Some(4),
        ..ControlParameters::default()
    };
    operator.command("rib", "register", &theirs).await.unwrap();
    let others = keeper.others(&operator.inventory().await.unwrap());
    assert_eq!((others.faces.len(), others.routes.len(), others.strategies.len(), others.unset.len()), (0, 1, 0, 0));
    assert_eq!((others.routes[0].origin.0, others.routes[0].cost), (origin::CLIENT, 4));

    // The same, in a node that declares nothing.
    let second = self::router();
    let mut restored = Keeper::new(second.operator());
    assert_eq!(restored.apply(others).await.unwrap(), <[Problem; 0]>::default());
    assert_eq!(routes(&second.operator()).await, ["/theirs udp4://127.0.0.1:7001 4"]);
    second.stop();
    apply(&mut keeper, "").await;
    router.stop();
}

/// Commands take numbers and names that a file does not take.
#[tokio::test]
async fn the_largest_things_are_kept_in_a_file_that_can_be_read() {
    let router = router();
    let operator = router.operator();
    let keeper = Keeper::new(operator.clone());
    let create = ControlParameters {
        uri: Some("udp4://127.0.0.1:7001".to_owned()),
        face_persistency: Some(2),
        ..ControlParameters::default()
    };
    let face_id = operator.command("faces", "create", &create).await.unwrap().face_id;
    let mut long = NameBuf::new();
    long.push_generic(&[b'%'; 2000]);
    for name in [long, "/a/54=%00%05".parse().unwrap()] {
        let parameters = ControlParameters {
            name: Some(name),
            face_id,
            origin: Some(255),
            cost: Some(u64::MAX),
            ..ControlParameters::default()
        };
        operator.command("rib", "register", &parameters).await.unwrap();
    }
    let others = keeper.others(&operator.inventory().await.unwrap());
    assert_eq!(others.faces.len(), 1);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("state.toml");
    state_file::write(&file, &others).unwrap();
    assert_eq!(state_file::read(&file).unwrap(), others);
    assert!(others.routes.iter().any(|route| route.prefix.0 == "/a/54=%00%05".parse().unwrap()), "{others:?}");
    router.stop();
}

#[tokio::test]
async fn an_operator_hears_of_changes_and_of_the_end() {
    let router = router();
    let mut operator = router.operator();
    let change = CsChange { capacity_packets: Some(9), serve: Some(false), ..CsChange::default() };
    operator.configure_cs(change).unwrap();
    let name = ControlParameters { name: Some("/a".parse().unwrap()), ..ControlParameters::default() };
    let refused = operator.command("strategy-choice", "set", &name).await;
    assert!(matches!(&refused, Err(OperatorError::Refused(response)) if response.code == 400), "{refused:?}");
    let strategy = Some("/localhost/nfd/strategy/multicast".parse().unwrap());
    operator.command("strategy-choice", "set", &ControlParameters { strategy, ..name }).await.unwrap();
    operator.changed().await.unwrap();
    router.stop();
    assert!(matches!(operator.inventory().await, Err(OperatorError::Stopped)));
    while operator.changed().await.is_ok() {}
}

/// Whatever was declared before, the node has what is declared now, and what the keeper did not make.
mod sequences {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const FACES: [&str; 3] = ["udp4://127.0.0.1:7001", "udp4://127.0.0.1:7002", "udp4://127.0.0.1:7003"];
    const PREFIXES: [&str; 3] = ["/a", "/a/b", "/c"];
    const STRATEGIES: [&str; 2] = ["best-route", "multicast"];

    /// A bit for each face; the cost of a route by prefix and face, or none; the strategy of each prefix, or none.
    type Step = (u8, [[Option<u64>; 3]; 3], [Option<usize>; 3]);

    fn step() -> impl Strategy<Value = Step> {
        let cost = prop::option::weighted(0.4, 0u64..3);
        let routes = prop::array::uniform3(prop::array::uniform3(cost));
        (0u8..8, routes, prop::array::uniform3(prop::option::weighted(0.4, 0usize..2)))
    }

    fn text(step: &Step) -> String {
        let (faces, routes, strategies) = step;
        let mut text = String::new();
        for (index, uri) in FACES.iter().enumerate().filter(|(index, _)| faces & (1 << index) != 0) {
            text += &format!("[[face]]\nuri = \"{uri}\"\nmtu = {}\n", 1000 + index);
        }
        for (prefix, costs) in PREFIXES.iter().zip(routes) {
            for (face, cost) in FACES.iter().zip(costs) {
                if let Some(cost) = cost {
                    text += &(route(prefix, face) + &format!("cost = {cost}\n"));
                }
            }
        }
        for (prefix, strategy) in PREFIXES.iter().zip(strategies) {
            if let Some(strategy) = strategy {
                let name = STRATEGIES[*strategy];
                text += &format!("[[strategy]]\nprefix = \"{prefix}\"\nstrategy = \"{name}\"\n");
            }
        }
        text
    }

    async fn check(operator: &Operator, step: &Step) {
        let (faces, costs, strategies) = step;
        let mut wanted = BTreeSet::from(["/theirs udp4://127.0.0.1:7009 0".to_owned()]);
        let mut wanted_faces = BTreeSet::from(["udp4://127.0.0.1:7009".to_owned()]);
        for (prefix, costs) in PREFIXES.iter().zip(costs) {
            for (index, cost) in costs.iter().enumerate() {
                if let Some(cost) = cost {
                    wanted.insert(format!("{prefix} {} {cost}", FACES[index]));
                    wanted_faces.insert(FACES[index].to_owned());
                }
            }
        }
        let declared = FACES.iter().enumerate().filter(|(index, _)| faces & (1 << index) != 0);
        wanted_faces.extend(declared.map(|(_, uri)| (*uri).to_owned()));
        assert_eq!(routes(operator).await.into_iter().collect::<BTreeSet<_>>(), wanted);
        assert_eq!(super::faces(operator).await.into_iter().collect::<BTreeSet<_>>(), wanted_faces);
        let choices = operator.inventory().await.unwrap().strategies;
        for (prefix, strategy) in PREFIXES.iter().zip(strategies) {
            let choice = choices.iter().find(|choice| choice.name.to_string() == *prefix);
            let chosen = choice.map(|choice| choice.strategy.to_string());
            let is_right = match strategy {
                Some(strategy) => chosen.as_ref().is_some_and(|name| name.contains(STRATEGIES[*strategy])),
                None => chosen.is_none(),
            };
            assert!(is_right, "{prefix}: {chosen:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn only_the_last_declaration_counts(steps in prop::collection::vec(step(), 1..6)) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let router = super::router();
                let operator = router.operator();
                let mut others = Keeper::new(operator.clone());
                apply(&mut others, &route("/theirs", "udp4://127.0.0.1:7009")).await;
                let mut keeper = Keeper::new(operator.clone());
                for step in &steps {
                    apply(&mut keeper, &text(step)).await;
                    check(&operator, step).await;
                }
                router.stop();
            });
        }
    }
}
