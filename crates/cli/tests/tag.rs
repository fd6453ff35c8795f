//! `namewire tag` with a real router that forwards tag packets.

mod router_process;

use router_process::{Router, eventually};
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::mpsc::channel,
};

#[test]
fn a_concert_is_advertised_pulled_and_pushed() {
    let directory = tempfile::tempdir().unwrap();
    let (configuration, programme) = (directory.path().join("router.toml"), directory.path().join("programme"));
    std::fs::write(&configuration, "[tagnet]\ntrees = [1]\n").unwrap();
    std::fs::write(&programme, "Symphony no. 9").unwrap();
    let router = Router::run(directory.path(), &["--config", configuration.to_str().unwrap()]);

    let mut hall = router.command();
    hall.args(["tag", "advertise", "classical,concert", "--json", "--answer"]).arg(&programme);
    let mut hall = hall.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(hall.stderr.take().unwrap()).read_line(&mut ready).unwrap();
    assert_eq!(ready, "advertised {classical, concert} for both\n");

    let routes = router.ask(&["tag", "routes"]);
    assert!(routes.lines().count() == 2 && routes.contains("both    {classical, concert}\n"), "{routes}");
    let trees: serde_json::Value = serde_json::from_str(&router.ask(&["tag", "locator", "--json"])).unwrap();
    assert_eq!((&trees[0]["tree"], &trees[0]["descriptors"]), (&1.into(), &1.into()), "{trees}");

    // The router's tables follow an advertisement a moment later, so the first pull may find nothing.
    let pull = || router.tool(&["tag", "pull", "Beethoven", "classical", "concert", "--timeout", "1000"]);
    let answer = (0..100).map(|_| pull()).find(|output| output.status.code() != Some(5)).expect("an answer");
    assert_eq!(
        String::from_utf8(answer.stdout).unwrap(),
        "Symphony no. 9\n",
        "{}",
        String::from_utf8_lossy(&answer.stderr)
    );
    let nothing = router.tool(&["tag", "pull", "classical", "--timeout", "50"]);
    let message = String::from_utf8(nothing.stderr).unwrap();
    assert_eq!((nothing.status.code(), message.contains("no answer within 50 ms")), (Some(5), true), "{message}");

    // Nor do they know at once that an application has joined.
    let lines = BufReader::new(hall.stdout.take().unwrap()).lines().map_while(Result::ok);
    let (sender, packets) = channel();
    std::thread::spawn(move || lines.map(|line| serde_json::from_str(&line)).try_for_each(|line| sender.send(line)));
    let mut came: Vec<serde_json::Value> = Vec::new();
    eventually("the push comes", || {
        router.ask(&["tag", "push", "classical", "concert", "news", "--payload", "the tenor is ill"]);
        came.extend(packets.try_iter().map(Result::unwrap));
        came.iter().any(|packet| packet["kind"] == "push")
    });
    let tags = serde_json::json!(["Beethoven", "classical", "concert"]);
    assert_eq!((&came[0]["kind"], &came[0]["tags"]), (&"pull".into(), &tags));
    assert_eq!(came.last().unwrap()["payload_text"], "the tenor is ill");
    assert!(Command::new("kill").args(["-INT", &hall.id().to_string()]).status().unwrap().success());
    assert!(hall.wait().unwrap().success(), "Ctrl-C ends it");
}
