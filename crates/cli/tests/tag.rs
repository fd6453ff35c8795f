//! `namewire tag` with a real router that forwards tag packets.

use crate::router_process::{NAMEWIRE, Router, eventually, free_port, lines_of_block};
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
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

/// The story: `tag advertise` ended when its router did, and pulls found nobody after the restart.
#[test]
fn an_advertisement_survives_a_restart_of_the_router() {
    let directory = tempfile::tempdir().unwrap();
    let (configuration, programme) = (directory.path().join("router.toml"), directory.path().join("programme"));
    std::fs::write(&configuration, "[tagnet]\ntrees = [1]\n").unwrap();
    std::fs::write(&programme, "Symphony no. 9").unwrap();
    let start = || Router::run(directory.path(), &["--config", configuration.to_str().unwrap()]);
    let router = start();
    let mut hall = router.command();
    hall.args(["tag", "advertise", "concert", "--answer"]).arg(&programme);
    let mut hall = hall.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(hall.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(lines.next().as_deref(), Some("advertised {concert} for both"));
    drop(router);
    let router = start();
    eventually("it is advertised again", || {
        let pull = router.tool(&["tag", "pull", "concert", "--timeout", "500"]);
        pull.stdout == b"Symphony no. 9\n"
    });
    assert!(Command::new("kill").args(["-INT", &hall.id().to_string()]).status().unwrap().success());
    assert!(hall.wait().unwrap().success(), "Ctrl-C ends it");
}

/// The commands of `docs/tagnet.md`, as they stand there.
fn documented_commands(nth: usize) -> Vec<Vec<String>> {
    let words = |line: &str| {
        // Words in quotation marks are one argument.
        let line = line.split(" #").next().unwrap_or_default().trim();
        let parts = line.split('"').enumerate();
        let words = parts.flat_map(|(place, part)| match place % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
            _ => vec![part.to_owned()],
        });
        words.collect()
    };
    lines_of_block(include_str!("../../../docs/tagnet.md"), nth).map(words).collect()
}

/// Starts a documented command in this directory.
fn start_command(router: &Router, directory: &Path, words: &[String]) -> Child {
    assert_eq!(words[0], "namewire", "{words:?}");
    let mut command = router.command();
    command.args(&words[1..]).current_dir(directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn the_commands_of_the_documentation_do_what_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    std::fs::write(path.join("router.toml"), "[tagnet]\ntrees = [1]\n").unwrap();
    std::fs::write(path.join("programme.txt"), "Symphony no. 9\n").unwrap();
    let router = Router::run(path, &["--config", path.join("router.toml").to_str().unwrap()]);
    let commands = documented_commands(2);
    let [advertise, pull, follow_up, push, routes, locator] = &commands[..] else {
        panic!("other commands: {commands:?}")
    };
    let mut hall = start_command(&router, path, advertise);
    let run = |words: &[String]| {
        let output = start_command(&router, path, words).wait_with_output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    // With -k 3 it waits for its time-out, because there is one application.
    eventually("the pull is answered", || run(pull) == (true, "Symphony no. 9\n".to_owned()));
    eventually("the follow-up is answered too", || run(follow_up) == (true, "Symphony no. 9\n".repeat(2)));
    let mut lines = BufReader::new(hall.stdout.take().unwrap()).lines().map_while(Result::ok);
    let (sender, said) = channel();
    std::thread::spawn(move || lines.try_for_each(|line| sender.send(line)));
    let by_locator = said.iter().take(10_000).find(|line| line.starts_with("pull by locator "));
    assert!(by_locator.is_some_and(|line| line.ends_with("\"part 2\"")));
    eventually("the push comes, though the router may not know at once that its sender has joined", || {
        assert!(run(push).0);
        said.try_iter().any(|line| line.starts_with("push ") && line.ends_with("\"the tenor is ill\""))
    });
    let (is_right, known) = run(routes);
    assert!(is_right && known.contains("{classical, concert}"), "{known}");
    let (is_right, place) = run(locator);
    assert!(is_right && place.starts_with("TREE") && place.lines().count() == 2, "{place}");
    assert!(router.ask(&["status"]).contains("TagNet     tree 1: root, 0 children, 1 descriptors"));
    hall.kill().unwrap();
    hall.wait().unwrap();
}

/// The story: a face made by hand closed, because the neighbour was not up yet, and the two routers never met.
#[test]
fn a_face_of_the_documentations_command_meets_a_neighbour_that_starts_later() {
    let directory = tempfile::tempdir().unwrap();
    let ports = [free_port(), free_port()];
    let start = |end: usize| {
        let file = directory.path().join(format!("{end}.toml"));
        let listen = format!("[faces.tcp]\nenabled = false\n[faces.udp]\nlisten = [\"127.0.0.1:{}\"]\n", ports[end]);
        std::fs::write(&file, format!("{listen}[tagnet]\ntrees = [1]\nrouter_number = {}\n", end + 1)).unwrap();
        let socket = directory.path().join(format!("{end}.sock"));
        Router::start(&socket, Command::new(NAMEWIRE).args(["run", "--config"]).arg(&file).arg("--socket").arg(&socket))
    };
    let commands = documented_commands(0);
    let [create] = &commands[..] else { panic!("other commands: {commands:?}") };
    let create_to = |end: usize| {
        let uri = format!("udp4://127.0.0.1:{}", ports[end]);
        let words = create.iter().map(|word| if word.starts_with("udp4://") { uri.clone() } else { word.clone() });
        words.collect::<Vec<_>>()
    };
    let make_face = |router: &Router, to: usize| {
        let output = start_command(router, directory.path(), &create_to(to)).wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let first = start(0);
    make_face(&first, 1);
    eventually("the face is down", || {
        first.ask(&["face", "list"]).lines().any(|line| line.split_whitespace().nth(1) == Some("down"))
    });
    let second = start(1);
    make_face(&second, 0);
    let tree = |router: &Router| -> serde_json::Value {
        serde_json::from_str(&router.ask(&["tag", "locator", "--json"])).unwrap()
    };
    eventually("the routers are in one tree", || {
        let (root, child) = (tree(&first), tree(&second));
        root[0]["child_face_ids"].as_array().unwrap().len() == 1 && child[0]["parent_face_id"].is_u64()
    });
}

/// Routers with the key of the documentation's command are neighbours in the tree; one with another key is not.
#[test]
fn a_key_keeps_strangers_out_of_the_tree() {
    let directory = tempfile::tempdir().unwrap();
    let line = lines_of_block(include_str!("../../../docs/tagnet.md"), 1).next().unwrap();
    let write_key = |name: &str| {
        let path = directory.path().join(name).to_str().unwrap().to_owned();
        let (command, _) = line.split_once('#').unwrap();
        let command = command.replace("/etc/namewire/tagnet.keys", &path);
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success(), "{command}");
        path
    };
    let [ours, theirs] = ["ours.keys", "theirs.keys"].map(write_key);
    let ports = [free_port(), free_port(), free_port()];
    let start = |end: usize, key_file: &str| {
        let file = directory.path().join(format!("{end}.toml"));
        let mut text = format!("[faces.tcp]\nenabled = false\n[faces.udp]\nlisten = [\"127.0.0.1:{}\"]\n", ports[end]);
        text += &format!("[tagnet]\ntrees = [1]\nrouter_number = {}\nkey_file = {key_file:?}\n", end + 1);
        for (other, port) in ports.iter().enumerate().filter(|(other, _)| *other != end) {
            if end == 0 || other == 0 {
                text += &format!("[[face]]\nuri = \"udp4://127.0.0.1:{port}\"\n");
            }
        }
        std::fs::write(&file, text).unwrap();
        let socket = directory.path().join(format!("{end}.sock"));
        Router::start(&socket, Command::new(NAMEWIRE).args(["run", "--config"]).arg(&file).arg("--socket").arg(&socket))
    };
    let (root, child, stranger) = (start(0, &ours), start(1, &ours), start(2, &theirs));
    let tree = |router: &Router| -> serde_json::Value {
        serde_json::from_str(&router.ask(&["tag", "locator", "--json"])).unwrap()
    };
    eventually("the routers with the key are in one tree", || {
        let (root, child) = (tree(&root), tree(&child));
        root[0]["child_face_ids"].as_array().unwrap().len() == 1 && child[0]["parent_face_id"].is_u64()
    });
    eventually("the stranger was refused", || root.ask(&["status"]).contains("tag-routing.not-authentic"));
    assert!(tree(&stranger)[0]["parent_face_id"].is_null(), "{}", tree(&stranger));
    assert_eq!(tree(&root)[0]["child_face_ids"].as_array().unwrap().len(), 1);
}

#[test]
fn packets_name_a_tree_or_a_place() {
    let directory = tempfile::tempdir().unwrap();
    let (configuration, programme) = (directory.path().join("router.toml"), directory.path().join("programme"));
    std::fs::write(&configuration, "[tagnet]\ntrees = [1, 2]\n").unwrap();
    std::fs::write(&programme, "Symphony no. 9").unwrap();
    let router = Router::run(directory.path(), &["--config", configuration.to_str().unwrap()]);
    let mut hall = router.command();
    hall.args(["tag", "advertise", "concert", "--json", "--answer"]).arg(&programme);
    let mut hall = hall.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(hall.stdout.take().unwrap()).lines().map_while(Result::ok);
    let (sender, packets) = channel();
    std::thread::spawn(move || lines.map(|line| serde_json::from_str(&line)).try_for_each(|line| sender.send(line)));
    let mut packets = packets.iter().map(|packet: Result<serde_json::Value, _>| packet.unwrap());

    let mut place = String::new();
    eventually("the pull in tree 2 is answered", || {
        let pull = router.tool(&["tag", "pull", "concert", "--tree", "2", "--timeout", "500", "-v"]);
        place = String::from_utf8(pull.stderr).unwrap().trim().rsplit(' ').next().unwrap().to_owned();
        pull.stdout == b"Symphony no. 9\n"
    });
    assert!(place.starts_with("2."), "{place}");
    let asked = packets.next().unwrap();
    assert_eq!((&asked["tags"], &asked["place"]["tree"]), (&serde_json::json!(["concert"]), &2.into()));
    let pull_from_place = |text| router.ask(&["tag", "pull", "--to", &place, "--payload", text, "--timeout", "100000"]);
    assert_eq!(pull_from_place("encore?"), "Symphony no. 9\n");
    assert!(packets.any(|packet| packet["tags"].is_null() && packet["payload_text"] == "encore?"));
    // The router may not know at once that an application has joined.
    let pushed = std::iter::repeat_with(|| router.ask(&["tag", "push", "--to", &place, "--payload", "encore!"]));
    let came = pushed.take(1_000).any(|said| {
        assert_eq!(said, format!("7 bytes pushed to {place}\n"));
        pull_from_place("and?");
        packets.by_ref().take_while(|packet| packet["payload_text"] != "and?").any(|packet| packet["kind"] == "push")
    });
    assert!(came);

    for command in ["push concert --tree 3 --payload x", "pull concert --tree 3 --timeout 50"] {
        let output = router.tool(&[&["tag"][..], &command.split(' ').collect::<Vec<_>>()].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), message.contains("not in tree 3")), (Some(1), true), "{command}: {message}");
    }
    for command in [
        &["tag", "pull", "--timeout", "50"][..],
        &["tag", "pull", "a", "--to", &place],
        &["tag", "pull", "-k", "2", "--to", &place],
        &["tag", "push", "--to", "x"],
    ] {
        assert_eq!(router.tool(command).status.code(), Some(2), "{command:?}");
    }
    hall.kill().unwrap();
    hall.wait().unwrap();
}

#[test]
fn without_trees_every_command_names_the_setting() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    for command in ["advertise a", "push a --payload x", "pull a --timeout 50", "routes", "locator"] {
        let output = router.tool(&[&["tag"][..], &command.split(' ').collect::<Vec<_>>()].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), message.contains("[tagnet] trees")), (Some(1), true), "{command}: {message}");
    }
}
