//! Seven router processes over UDP, with two paths through the middle:
//!
//! ```text
//!   hall ─ a ── b ── c ── d ── e ─ player
//!               └─── f ───┘
//!                    g
//! ```
//!
//! A player finds a concert by its tags. 1,000 follow-ups go by locator, while NDN packets pass over the same links. A
//! push reaches five subscribers. Everything works again after the test has killed the router in the middle.

use crate::router_process::{NAMEWIRE, PATIENCE, Router, eventually, free_port};
use namewire_client::{
    Client,
    tag::{IncomingTagPacket, PullOptions, TagClient, TagPlace, TagReceiver, TagReply, TagServes, TagSet},
};
use std::{
    ops::Range,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

const LINKS: [(char, char); 7] = [('a', 'b'), ('b', 'c'), ('c', 'd'), ('d', 'e'), ('b', 'f'), ('f', 'd'), ('f', 'g')];
/// Long enough for seven processes on a busy machine, short enough to notice a lost packet.
const REPLY_WITHIN: Duration = Duration::from_secs(2);
/// Time in which a packet that must not come would come.
const SILENCE: Duration = Duration::from_millis(500);

struct Network {
    directory: tempfile::TempDir,
    ports: Vec<(char, u16)>,
    routers: Vec<(char, Router)>,
}

impl Network {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ports: Vec<(char, u16)> = ('a'..='g').map(|router| (router, free_port())).collect();
        let mut network = Network { directory, ports, routers: Vec::new() };
        ('a'..='g').for_each(|router| network.start_router(router));
        network
    }

    fn port(&self, router: char) -> u16 {
        self.ports.iter().find(|(name, _)| *name == router).unwrap().1
    }

    /// Starts a router with its faces, its part in tree 1, and a way for NDN to `/hall`.
    fn start_router(&mut self, router: char) {
        let ends = LINKS.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
        let neighbours: Vec<char> = ends.filter(|(from, _)| *from == router).map(|(_, to)| to).collect();
        // c has the lowest number: the root is killed.
        let number = if router == 'c' { 1 } else { router as u32 };
        let mut text = format!(
            "[faces.tcp]\nenabled = false\n[faces.udp]\nlisten = [\"127.0.0.1:{}\"]\n[tagnet]\ntrees = [1]\n\
             router_number = {number}\n",
            self.port(router)
        );
        for neighbour in neighbours {
            let uri = format!("udp4://127.0.0.1:{}", self.port(neighbour));
            text += &format!("[[face]]\nuri = \"{uri}\"\npersistency = \"permanent\"\n");
            if neighbour < router {
                text += &format!("[[route]]\nprefix = \"/hall\"\nface = \"{uri}\"\n");
            }
        }
        let file = self.directory.path().join(format!("{router}.toml"));
        std::fs::write(&file, text).unwrap();
        let socket = self.socket(router);
        let mut command = Command::new(NAMEWIRE);
        command.args(["run", "--config"]).arg(&file).arg("--socket").arg(&socket);
        self.routers.retain(|(name, _)| *name != router);
        self.routers.push((router, Router::start(&socket, &mut command)));
    }

    fn socket(&self, router: char) -> PathBuf {
        self.directory.path().join(format!("{router}.sock"))
    }

    fn router(&self, router: char) -> &Router {
        &self.routers.iter().find(|(name, _)| *name == router).unwrap().1
    }

    async fn client(&self, router: char) -> TagClient {
        let uri = format!("unix://{}", self.socket(router).display());
        TagClient::new(&Client::connect_to(uri.parse().unwrap()).await.unwrap())
    }
}

fn tags(text: &str) -> TagSet {
    text.parse().unwrap()
}

/// Answers every pull with what it asked.
fn serve(mut receiver: TagReceiver) {
    tokio::spawn(async move {
        while let Some(pull) = receiver.next().await {
            let _ = pull.reply(pull.payload()).await;
        }
    });
}

/// Pulls by tags until an answer comes.
async fn find(player: &TagClient, wanted: &TagSet) -> TagReply {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let options = PullOptions { replies_max: 1, timeout: REPLY_WITHIN };
        if let Some(reply) = player.pull(wanted, b"where?", options).await.unwrap().next().await.unwrap() {
            return reply;
        }
    }
    panic!("nobody answers {wanted}");
}

/// Follow-ups until this number is answered; after a loss, the place is looked for again. Returns the losses.
async fn follow_ups(player: &TagClient, wanted: &TagSet, mut place: TagPlace, numbers: Range<u32>) -> u32 {
    let mut lost = 0;
    for number in numbers {
        loop {
            match player.follow_up(&place, &number.to_be_bytes(), REPLY_WITHIN).await {
                Ok(reply) => break assert_eq!(reply.payload(), number.to_be_bytes()),
                Err(_) => {
                    lost += 1;
                    place = find(player, wanted).await.place().unwrap();
                }
            }
        }
    }
    lost
}

/// The next packet that is a push.
async fn push_within(receiver: &mut TagReceiver, patience: Duration) -> Option<IncomingTagPacket> {
    tokio::time::timeout(patience, receiver.next()).await.ok().flatten().filter(IncomingTagPacket::is_push)
}

/// Pushes until all who asked have heard; whoever did not ask must hear nothing.
async fn push_to_all(sender: &TagClient, about: &TagSet, subscribers: &mut [TagReceiver], other: &mut TagReceiver) {
    let mut heard = vec![false; subscribers.len()];
    let end = Instant::now() + PATIENCE;
    while heard.contains(&false) {
        assert!(Instant::now() < end, "{heard:?}");
        sender.push(about, b"the tenor is ill").await.unwrap();
        for (heard, subscriber) in heard.iter_mut().zip(subscribers.iter_mut()) {
            *heard |= push_within(subscriber, SILENCE).await.is_some();
        }
    }
    assert!(push_within(other, SILENCE).await.is_none(), "it did not ask");
}

async fn subscribe(network: &Network, router: char, set: &str) -> (TagClient, TagReceiver) {
    let client = network.client(router).await;
    let receiver = client.receive().unwrap();
    client.advertise(&tags(set), TagServes::Push, None).await.unwrap();
    (client, receiver)
}

#[tokio::test]
async fn a_concert_is_found_pushed_and_found_again_after_a_router_died() {
    let mut network = Network::start();
    let hall = network.client('a').await;
    serve(hall.receive().unwrap());
    hall.advertise(&tags("concert, classical"), TagServes::Pull, None).await.unwrap();
    let player = network.client('e').await;
    let wanted = tags("classical, Beethoven, ninth, concert, 360bps");
    let place = find(&player, &wanted).await.place().unwrap();

    // NDN beside it: a file through the same routers.
    let file = network.directory.path().join("file");
    std::fs::write(&file, (0..2_000_000_u32).map(|byte| byte as u8).collect::<Vec<u8>>()).unwrap();
    let mut put = network.router('a').command().arg("put").arg(&file).arg("/hall/file").spawn().unwrap();
    eventually("the file is served", || network.router('a').ask(&["route", "list"]).contains("/hall/file"));
    let got = network.directory.path().join("got");
    let mut get = network.router('e').command().args(["get", "/hall/file", "--output"]).arg(&got).spawn().unwrap();
    assert_eq!(follow_ups(&player, &wanted, place, 0..1_000).await, 0, "no router has died yet");
    assert!(get.wait().unwrap().success());
    assert!(std::fs::read(&got).unwrap() == std::fs::read(&file).unwrap());
    put.kill().unwrap();
    put.wait().unwrap();

    let (mut clients, mut receivers) = (Vec::new(), Vec::new());
    for router in ['a', 'b', 'd', 'e', 'g'] {
        let (client, receiver) = subscribe(&network, router, "concert, news").await;
        clients.push(client);
        receivers.push(receiver);
    }
    let (_other, mut elsewhere) = subscribe(&network, 'g', "concert, jazz").await;
    hall.join().await.unwrap();
    let about = tags("concert, news, tonight");
    push_to_all(&hall, &about, &mut receivers, &mut elsewhere).await;

    // Kill -9 of the root in the middle, while follow-ups are on their way.
    let place = find(&player, &wanted).await.place().unwrap();
    network.routers.retain(|(router, _)| *router != 'c'); // Router's drop sends SIGKILL
    let lost = follow_ups(&player, &wanted, place, 1_000..1_200).await;
    println!("{lost} follow-ups had to be asked again after the router died");
    push_to_all(&hall, &about, &mut receivers, &mut elsewhere).await;
    network.start_router('c');
    let place = find(&player, &wanted).await.place().unwrap();
    follow_ups(&player, &wanted, place, 1_200..1_400).await;

    // Withdrawn: nobody answers any more, and the routers say why.
    hall.withdraw(&tags("concert, classical")).await.unwrap();
    let end = Instant::now() + PATIENCE;
    while !network.router('e').ask(&["status"]).contains("tag.no-match") {
        assert!(Instant::now() < end, "e forwards pulls still");
        let options = PullOptions { replies_max: 1, timeout: SILENCE };
        let _ = player.pull(&wanted, b"", options).await.unwrap().next().await.unwrap();
    }
}
