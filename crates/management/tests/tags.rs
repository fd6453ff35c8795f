//! Commands and datasets of `tags`, over tables that really advertise.

use namewire_management::{ManagementConfig, TagPlane, TagPlaneRefusal, Times, TrustConfig};
use namewire_packet::{
    Data, FaceId, InterestBuilder, Nonce, content_type,
    nfd::{ControlParameters, ControlResponse, TagBranch, TagRoute, TagServes, TagTree, decode_dataset},
    signature::signature_type::DIGEST_SHA256,
    tag::TagList,
};
use namewire_security::trust::{
    Checker, KeyLocatorRule, NameFilter, PacketKind, Rule, RulesOrAny, ValidatorConfig, name_regex::NameRegex,
};
use namewire_tagnet::{
    Descriptor, TagSet,
    advertisements::{AdvertisementLimits, AdvertisementRefusal, Advertisements, TreeLink},
    forwarder::{Branch, BranchSet, Serves},
};
use namewire_testbed::management::{
    Bench, LOCAL_FACE, UDP_FACE, answer_in, command_name, for_prefix, fresh_fields, local_face, signed_command,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

const OTHER_APPLICATION: FaceId = FaceId(310);

/// The tables of a router with one tree and no neighbour.
struct Tables {
    advertisements: Advertisements,
    /// What applications advertised, and when each ends.
    tag_sets: BTreeMap<(FaceId, TagSet), Option<u64>>,
    may_push: BTreeSet<FaceId>,
}

const APPLICATIONS_MAX: usize = 2;

impl Tables {
    fn link(face: FaceId) -> TreeLink {
        TreeLink { tree: 1, face }
    }

    fn withdraw(&mut self, face: FaceId, tags: TagSet) -> bool {
        let was_there = self.advertisements.withdraw(Self::link(face), &tags);
        self.tag_sets.remove(&(face, tags)).is_some() && was_there
    }

    fn expire(&mut self, now_ns: u64) {
        let is_due = |ends_at: &Option<u64>| ends_at.is_some_and(|at_ns| at_ns <= now_ns);
        let due: Vec<_> = self.tag_sets.iter().filter(|(_, at)| is_due(at)).map(|(key, _)| key.clone()).collect();
        for (face, tags) in due {
            self.withdraw(face, tags);
        }
    }

    fn branch(&self, descriptor: Descriptor, branch: &Branch) -> TagBranch {
        let sets = self.tag_sets.keys().filter(|(face, set)| *face == branch.face && set.descriptor() == descriptor);
        TagBranch {
            tree: branch.tree.into(),
            face_id: branch.face,
            serves: match branch.serves {
                Serves::PULL => TagServes::Pull,
                Serves::PUSH => TagServes::Push,
                _ => TagServes::Both,
            },
            is_application: branch.is_application,
            tag_sets: sets.map(|(_, set)| tag_list(set)).collect(),
        }
    }
}

fn tag_set(tags: &[&str]) -> TagSet {
    TagSet::new(tags.iter().copied()).expect("management checked them")
}

fn tag_list(set: &TagSet) -> TagList {
    TagList::new(set.tags().iter().map(String::as_str)).expect("a set has the limits of a list")
}

/// The tables, shared with the test, which looks at them.
#[derive(Clone)]
struct SharedTables(Arc<Mutex<Tables>>);

impl TagPlane for SharedTables {
    fn advertise(
        &mut self,
        now: Times,
        face: FaceId,
        tags: &[&str],
        serves: TagServes,
        expires_ms: Option<u64>,
    ) -> Result<(), TagPlaneRefusal> {
        let mut tables = self.0.lock().unwrap();
        tables.expire(now.mono_ns);
        let serves = match serves {
            TagServes::Pull => Serves::PULL,
            TagServes::Push => Serves::PUSH,
            TagServes::Both => Serves::BOTH,
        };
        let link = Tables::link(face);
        tables.advertisements.advertise(link, tag_set(tags), serves).map_err(|why| match why {
            AdvertisementRefusal::Full => TagPlaneRefusal::Full,
            AdvertisementRefusal::FaceShareUsed => TagPlaneRefusal::FaceShareUsed,
        })?;
        let ends_at_ns = expires_ms.map(|ms| now.mono_ns + ms * 1_000_000);
        tables.tag_sets.insert((face, tag_set(tags)), ends_at_ns);
        Ok(())
    }

    fn withdraw(&mut self, face: FaceId, tags: &[&str]) -> bool {
        self.0.lock().unwrap().withdraw(face, tag_set(tags))
    }

    fn allow_push(&mut self, face: FaceId) -> Result<(), TagPlaneRefusal> {
        let mut tables = self.0.lock().unwrap();
        if tables.may_push.len() == APPLICATIONS_MAX && !tables.may_push.contains(&face) {
            return Err(TagPlaneRefusal::Full);
        }
        tables.may_push.insert(face);
        Ok(())
    }

    fn trees(&self) -> Vec<TagTree> {
        let descriptors = self.0.lock().unwrap().advertisements.len() as u64;
        vec![TagTree { tree: 1, routers_below: 1, descriptors, ..TagTree::default() }]
    }

    fn routes(&self) -> Vec<TagRoute> {
        let tables = self.0.lock().unwrap();
        let route = |(descriptor, set): (Descriptor, BranchSet)| {
            let branches = set.branches().iter().map(|branch| tables.branch(descriptor, branch)).collect();
            TagRoute { descriptor: descriptor.to_bytes(), branches }
        };
        let mut routes: Vec<TagRoute> = tables.advertisements.entries(usize::MAX).map(route).collect();
        routes.sort_by_key(|route| route.descriptor);
        routes
    }
}

/// A router with TagNet, and its tables: room for three sets of tags, two of them of one face.
fn bench_with(trust: TrustConfig) -> (Bench, SharedTables) {
    let mut bench = Bench::with_config(ManagementConfig { trust, ..Default::default() });
    let mut other = local_face();
    other.face = OTHER_APPLICATION;
    bench.add_face(other);
    let limits = AdvertisementLimits { descriptors: 3, reserved: 0, per_face: 2 };
    let tables = Tables {
        advertisements: Advertisements::new(limits).unwrap(),
        tag_sets: BTreeMap::new(),
        may_push: BTreeSet::new(),
    };
    let tables = SharedTables(Arc::new(Mutex::new(tables)));
    bench.router.tag_plane = Some(Box::new(tables.clone()));
    (bench, tables)
}

fn advertising(tags: &[&str], serves: TagServes) -> ControlParameters {
    ControlParameters { flags: Some(serves.code()), ..naming(tags) }
}

fn naming(tags: &[&str]) -> ControlParameters {
    ControlParameters { tags: Some(TagList::new(tags.iter().copied()).unwrap()), ..Default::default() }
}

fn command_from(bench: &mut Bench, face: FaceId, verb: &str, parameters: &ControlParameters) -> ControlResponse {
    bench.send_from(face, &signed_command(verb, parameters));
    bench.answer()
}

#[track_caller]
fn assert_refused(response: &ControlResponse, code: u64, text: &str) {
    assert_eq!(response.code, code, "{response:?}");
    assert!(response.text.contains(text), "{response:?} does not say {text:?}");
}

fn routes(bench: &mut Bench) -> Vec<TagRoute> {
    bench.pass_ms(20); // later than an earlier answer is shared
    decode_dataset(&bench.fetch("/localhost/nfd/tags/list")).expect("routes")
}

#[test]
fn an_application_advertises_and_withdraws_its_tags() {
    let (mut bench, _) = bench_with(TrustConfig::default());
    let concert = advertising(&["classical", "concert"], TagServes::Pull);
    let own = ControlParameters { face_id: Some(LOCAL_FACE), ..concert.clone() };
    assert_eq!(bench.command("tags/advertise", &concert), ControlResponse::ok(own.clone()));
    assert_eq!(bench.command("tags/advertise", &own), ControlResponse::ok(own), "its own face may be named");
    let tag_sets = vec![tag_list(&tag_set(&["classical", "concert"]))];
    let branch =
        |face_id, serves| TagBranch { tree: 1, face_id, serves, is_application: true, tag_sets: tag_sets.clone() };
    let descriptor = tag_set(&["classical", "concert"]).descriptor().to_bytes();
    let route = TagRoute { descriptor, branches: vec![branch(LOCAL_FACE, TagServes::Pull)] };
    assert_eq!(routes(&mut bench), std::slice::from_ref(&route));

    let both = advertising(&["classical", "concert"], TagServes::Both);
    assert_eq!(command_from(&mut bench, OTHER_APPLICATION, "tags/advertise", &both).code, 200);
    let branches = vec![branch(LOCAL_FACE, TagServes::Pull), branch(OTHER_APPLICATION, TagServes::Both)];
    assert_eq!(routes(&mut bench), [TagRoute { branches, ..route.clone() }]);
    let trees: Vec<TagTree> = decode_dataset(&bench.fetch("/localhost/nfd/tags/trees")).expect("trees");
    assert_eq!(trees.iter().map(|tree| (tree.tree, tree.descriptors)).collect::<Vec<_>>(), [(1, 1)]);

    let withdrawn = ControlParameters { face_id: Some(LOCAL_FACE), ..naming(&["classical", "concert"]) };
    let answer = bench.command("tags/withdraw", &naming(&["classical", "concert"]));
    assert_eq!(answer, ControlResponse::ok(withdrawn));
    let again = bench.command("tags/withdraw", &naming(&["classical", "concert"]));
    assert_refused(&again, 404, "Face 300 has not advertised");
    assert_eq!(routes(&mut bench), [TagRoute { branches: vec![branch(OTHER_APPLICATION, TagServes::Both)], ..route }]);
}

#[test]
fn an_advertisement_lasts_as_long_as_it_says() {
    let (mut bench, tables) = bench_with(TrustConfig::default());
    let brief = ControlParameters { expiration_period_ms: Some(5_000), ..advertising(&["a"], TagServes::Pull) };
    let answer = ControlParameters { face_id: Some(LOCAL_FACE), ..brief.clone() };
    assert_eq!(bench.command("tags/advertise", &brief), ControlResponse::ok(answer));
    assert_eq!(bench.command("tags/advertise", &advertising(&["b"], TagServes::Pull)).code, 200);
    tables.0.lock().unwrap().expire(bench.now.mono_ns + 4_999_000_000);
    assert_eq!(routes(&mut bench).len(), 2);
    tables.0.lock().unwrap().expire(bench.now.mono_ns + 5_000_000_000);
    assert_eq!(routes(&mut bench).len(), 1);
}

#[test]
fn a_push_needs_join_and_the_answer_has_the_endpoint() {
    let (mut bench, tables) = bench_with(TrustConfig::default());
    let answer = command_from(&mut bench, OTHER_APPLICATION, "tags/join", &ControlParameters::default());
    let endpoint = ControlParameters { face_id: Some(OTHER_APPLICATION), ..Default::default() };
    assert_eq!(answer, ControlResponse::ok(endpoint));
    assert_eq!(tables.0.lock().unwrap().may_push, BTreeSet::from([OTHER_APPLICATION]));
}

#[test]
fn limits_are_answered_with_the_reason() {
    let (mut bench, _) = bench_with(TrustConfig::default());
    for tags in [["a"], ["b"]] {
        assert_eq!(bench.command("tags/advertise", &advertising(&tags, TagServes::Pull)).code, 200);
    }
    let third = bench.command("tags/advertise", &advertising(&["c"], TagServes::Pull));
    assert_refused(&third, 507, "the face has advertised as many sets of tags as it may");
    let other = |bench: &mut Bench, tags: &[&str]| {
        command_from(bench, OTHER_APPLICATION, "tags/advertise", &advertising(tags, TagServes::Push))
    };
    assert_eq!(other(&mut bench, &["c"]).code, 200);
    assert_refused(&other(&mut bench, &["d"]), 507, "as many sets of tags");
    for face in [OTHER_APPLICATION, LOCAL_FACE] {
        assert_eq!(command_from(&mut bench, face, "tags/join", &ControlParameters::default()).code, 200);
    }
    let mut late = local_face();
    late.face = FaceId(311);
    bench.add_face(late);
    assert_refused(&command_from(&mut bench, FaceId(311), "tags/join", &ControlParameters::default()), 507, "may");
}

#[test]
fn malformed_commands_and_other_faces_are_refused() {
    let (mut bench, tables) = bench_with(TrustConfig::default());
    let a = advertising(&["a"], TagServes::Pull);
    for (verb, parameters, code, text) in [
        ("tags/advertise", ControlParameters { tags: None, ..a.clone() }, 400, "Tags is required"),
        ("tags/advertise", ControlParameters { flags: None, ..a.clone() }, 400, "Flags is required"),
        ("tags/advertise", ControlParameters { flags: Some(4), ..a.clone() }, 400, "Flags must be 1"),
        ("tags/advertise", advertising(&[], TagServes::Pull), 400, "at least one tag"),
        ("tags/advertise", ControlParameters { cost: Some(1), ..a.clone() }, 400, "Cost is forbidden"),
        ("tags/advertise", ControlParameters { face_id: Some(OTHER_APPLICATION), ..a.clone() }, 403, "not to 310"),
        ("tags/withdraw", ControlParameters { face_id: Some(UDP_FACE), ..naming(&["a"]) }, 403, "not to 301"),
        ("tags/withdraw", ControlParameters::default(), 400, "Tags is required"),
        ("tags/join", ControlParameters { face_id: Some(OTHER_APPLICATION), ..Default::default() }, 403, "not to 310"),
        ("tags/join", naming(&["a"]), 400, "Tags is forbidden"),
        ("tags/leave", ControlParameters::default(), 501, "tags/leave"),
        (
            "rib/unregister",
            ControlParameters { tags: naming(&["a"]).tags, ..for_prefix("/a") },
            400,
            "Tags is forbidden",
        ),
    ] {
        // Peer credentials allow every command; the face of another application is still not its own.
        assert_refused(&bench.command(verb, &parameters), code, text);
    }
    bench.send_from(FaceId::INTERNAL, &signed_command("tags/join", &ControlParameters::default()));
    assert_refused(&bench.answer(), 400, "only an application has tags");
    bench.send_from(UDP_FACE, &signed_command("tags/advertise", &a));
    assert_refused(&bench.answer(), 403, "face 301 is not local");
    let tables = tables.0.lock().unwrap();
    assert!(tables.advertisements.is_empty() && tables.may_push.is_empty());
}

#[test]
fn without_tagnet_every_answer_explains_how_to_turn_it_on() {
    let mut bench = Bench::new();
    for (verb, parameters) in [
        ("tags/advertise", advertising(&["a"], TagServes::Pull)),
        ("tags/withdraw", naming(&["a"])),
        ("tags/join", ControlParameters::default()),
    ] {
        assert_refused(&bench.command(verb, &parameters), 503, "the setting [tagnet] trees");
    }
    for dataset in ["trees", "list"] {
        bench.request(&format!("/localhost/nfd/tags/{dataset}"));
        assert_eq!(Data::parse(bench.reply()).unwrap().content_type(), content_type::NACK);
        assert_refused(&answer_in(bench.reply()), 503, "TagNet is off");
    }
}

#[test]
fn commands_are_signed_once_each() {
    let (mut bench, _) = bench_with(TrustConfig { peer_credentials: false, ..TrustConfig::default() });
    let name = command_name("tags/join", &ControlParameters::default());
    bench.send(&InterestBuilder::new(name.clone()).nonce(Nonce([1, 2, 3, 4])).build());
    assert_refused(&bench.answer(), 403, "not signed");
    let signed = InterestBuilder::new(name).nonce(Nonce([1, 2, 3, 4])).sign_digest(&fresh_fields());
    bench.send(&signed);
    assert_eq!(bench.answer().code, 200, "an application needs no credentials for its own tags");
    bench.send(&signed);
    assert_refused(&bench.answer(), 403, "replayed");
}

/// Everyone may advertise; no one may push, because no rule catches `join`.
#[test]
fn rules_decide_who_may_push() {
    let rule = Rule {
        id: "advertise".to_owned(),
        packet: PacketKind::Interest,
        filters: vec![NameFilter::Regex(
            NameRegex::parse("^<localhost><nfd><tags>[<advertise><withdraw>]<>*$").unwrap(),
        )],
        checkers: vec![Checker { signature_type: DIGEST_SHA256, key_locator: KeyLocatorRule::Any }],
        at_signing_time: false,
    };
    let rules = ValidatorConfig { rules: vec![rule], anchors: Vec::new() };
    let (mut bench, tables) =
        bench_with(TrustConfig { localhost_tags: Some(RulesOrAny::Rules(rules)), ..TrustConfig::default() });
    assert_eq!(bench.command("tags/advertise", &advertising(&["a"], TagServes::Pull)).code, 200);
    assert_refused(&bench.command("tags/join", &ControlParameters::default()), 403, "authorization rejected");
    assert!(tables.0.lock().unwrap().may_push.is_empty());
    assert_eq!(bench.command("rib/register", &for_prefix("/a")).code, 200);
}
