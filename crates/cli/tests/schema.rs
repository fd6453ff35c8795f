//! Compiled LVS schemas on the command line: `namewire schema check`, `get --schema`. Their settings are tested in
//! `configuration/trust.rs`.

use crate::{
    router_process::{Router, make_identity, namewire, namewire_of, text, text_of_failure},
    tools::Running,
};
use std::fs;

/// A schema of `interop/lvs_cases.py`, or of an application.
macro_rules! schema {
    ($name:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../security/tests/lvs/", $name, ".tlv")
    };
}

#[test]
fn a_check_says_which_rules_decide() {
    let check = |arguments: &[&str]| namewire(&[&["schema", "check"], arguments].concat());
    let said = |arguments: &[&str]| text(&check(arguments).stdout);
    assert_eq!(said(&[schema!("ndnd-dv")]), "roots of trust  #network_cert\n");
    let data = "/localhop/net/r1/32=DV/32=ADV/seg=1";
    let of_name = said(&[schema!("ndnd-dv"), "--name", data]);
    assert!(of_name.contains("#advertisement_data net10=net router=r1"), "{of_name}");
    let router = ["--key", "/net/r1/32=DV/KEY/k/net/v=1"];
    let allowed = check(&[&[schema!("ndnd-dv"), "--name", data], &router[..]].concat());
    assert!(allowed.status.success());
    assert!(text(&allowed.stdout).contains("allowed         #advertisement_data <= #router_cert"), "{allowed:?}");
    let other = ["--key", "/net/r2/32=DV/KEY/k/net/v=1", "--json"];
    let refused = check(&[&[schema!("ndnd-dv"), "--name", data], &other[..]].concat());
    assert_eq!(refused.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!(report["verdict"]["allowed"], false);
    assert_eq!(report["name"]["matches"][0]["values"]["router"], "r1");
    let reason = report["verdict"]["reason"].as_str().unwrap();
    assert!(reason.contains("does not let /net/r2/32=DV/KEY/k/net/v=1 sign this"), "{reason}");
    // The second rule of the name lets the key sign it; the first cannot be decided.
    let half = check(&[schema!("unbound"), "--name", "/a/y/ann", "--key", "/k/y"]);
    assert!(half.status.success() && text(&half.stdout).contains("$eq_type with a pattern that has no value yet"));
    let unknown = text_of_failure(&check(&[schema!("pyndn3")]));
    assert!(unknown.contains("pyndn3.tlv: the schema calls $fn, which this program does not have"), "{unknown}");
    let none = text_of_failure(&check(&[concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]));
    assert!(none.contains("not a compiled LVS schema"), "{none}");
}

#[test]
fn a_file_is_fetched_if_the_schema_lets_its_key_sign_it() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let router = Router::run(home, &[]);
    let (ann, other) = (home.join("ann.cert"), home.join("other.cert"));
    make_identity(home, "/admin/ann", &ann);
    make_identity(home, "/other/ann", &other);
    let file = home.join("file");
    fs::write(&file, [7; 20_000]).unwrap();
    let serve = |identity: &str, name: &str| {
        let mut command = namewire_of(home);
        command.args(["--transport", &router.uri(), "--identity", identity, "put"]).arg(&file).arg(name);
        let serving = Running::start(&mut command);
        serving.wait_for(name);
        serving
    };
    let get = |name: &str, schema: &str, anchor: &str| {
        router.tool(&["get", name, "--schema", schema, "--anchor", anchor, "-o", home.join("copy").to_str().unwrap()])
    };
    let (ann, other) = (ann.to_str().unwrap(), other.to_str().unwrap());
    let serving = [serve("/admin/ann", "/files/a"), serve("/other/ann", "/files/b"), serve("/admin/ann", "/else/c")];
    let fetched = get("/files/a", schema!("admin"), ann);
    assert!(fetched.status.success(), "{fetched:?}");
    assert_eq!(fs::read(home.join("copy")).unwrap(), [7; 20_000]);
    let by_other = text_of_failure(&get("/files/b", schema!("admin"), ann));
    assert!(by_other.contains("of the schema does not let /other/ann/KEY/"), "{by_other}");
    let elsewhere = text_of_failure(&get("/else/c", schema!("admin"), ann));
    assert!(elsewhere.contains("no rule of the schema says who may sign /else/c"), "{elsewhere}");
    let anchor = text_of_failure(&get("/files/b", schema!("admin"), other));
    assert!(anchor.contains("other.cert: the anchor /other/ann/KEY/"), "{anchor}");
    let alone = router.tool(&["get", "/files/a", "--schema", schema!("admin")]);
    assert_eq!(alone.status.code(), Some(2));
    drop(serving);
}
