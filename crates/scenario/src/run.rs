//! One run of a scenario: build, let time pass, count.

use crate::agenda::Agenda;
use crate::file::Scenario;
use crate::frames_kept::FramesKept;
use crate::results::{self, Results};
use crate::world::{OwnStrategies, World, nanos};
use std::path::Path;

/// How often progress is told.
const STEPS: u64 = 200;

/// What a run does besides simulating.
#[derive(Default)]
pub struct RunOptions<'r> {
    /// Where captured frames go; without it, none are kept.
    pub captures: Option<&'r Path>,
    /// Called with the share of the simulated time that has passed.
    pub progress: Option<&'r mut dyn FnMut(f64)>,
}

/// Runs a scenario to its end.
///
/// # Errors
/// If a file of the scenario is malformed, a strategy or policy is unknown, or a capture cannot be written.
pub fn run(
    scenario: &Scenario,
    seed: u64,
    own: &OwnStrategies,
    options: &mut RunOptions<'_>,
) -> anyhow::Result<Results> {
    let mut world = World::build(scenario, seed, own)?;
    let mut agenda = Agenda::new(scenario, seed, &world)?;
    let kept = match options.captures {
        Some(folder) => Some(FramesKept::begin(&scenario.capture, folder, &mut world)?),
        None => None,
    };
    let duration_ns = nanos(scenario.duration);
    let step_ns = (duration_ns / STEPS).max(1);
    let mut now_ns = 0;
    while now_ns < duration_ns {
        let change_ns = agenda.next_ns().unwrap_or(u64::MAX);
        if change_ns <= now_ns {
            agenda.apply(now_ns, &mut world)?;
            continue;
        }
        let told_ns = (now_ns / step_ns + 1) * step_ns;
        let until_ns = change_ns.min(told_ns).min(duration_ns);
        // Whether or not events are left: the clock is then at that time.
        let _ = world.net.run_for(until_ns - now_ns);
        now_ns = until_ns;
        if let Some(progress) = options.progress.as_mut().filter(|_| now_ns == told_ns) {
            progress(now_ns as f64 / duration_ns as f64);
        }
    }
    kept.map_or(Ok(()), FramesKept::end)?;
    let mut results = results::of(&world, nanos(scenario.bin), duration_ns);
    let (changes, recomputations) = agenda.tally();
    if changes > 0 {
        results.put("network", "changes of links", "changes", changes as f64);
    }
    if recomputations > 0 {
        results.put("network", "computations of routes", "computations", recomputations as f64);
    }
    Ok(results)
}

/// Builds a scenario and reads all its files, without letting time pass.
///
/// # Errors
/// As [`run`].
pub fn check(scenario: &Scenario, own: &OwnStrategies) -> anyhow::Result<()> {
    let world = World::build(scenario, 1, own)?;
    Agenda::new(scenario, 1, &world)?.check(&world)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(text: &str, settings: &[&str], seed: u64) -> anyhow::Result<Results> {
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let scenario = Scenario::parse(text, Path::new("."), &settings)?;
        run(&scenario, seed, &OwnStrategies::default(), &mut RunOptions::default())
    }

    /// Two consumers ask for the same names, the second later: the store in the middle has them.
    const LINE: &str = r#"
        duration = "60s"
        [[link]]
        a = "left"
        b = "middle"
        delay = "2ms"
        [[link]]
        a = "middle"
        b = "right"
        delay = "20ms"
        [[producer]]
        node = "right"
        prefix = "/p"
        freshness = "1h"
        [[consumer]]
        name = "far"
        node = "left"
        prefix = "/p"
        names = 100
        [[consumer]]
        name = "near"
        node = "middle"
        prefix = "/p"
        names = 100
        start = "30s"
    "#;

    fn node(results: &Results, name: &str, counter: &str) -> u64 {
        let row = results.nodes.iter().find(|row| row.0 == name);
        row.and_then(|row| row.1.iter().find(|count| count.0 == counter)).map_or(0, |count| count.1)
    }

    #[test]
    fn data_comes_by_the_shortest_path_and_later_from_the_store() -> anyhow::Result<()> {
        let results = ran(LINE, &[], 1)?;
        let latency = |group| results.figure(group, "latency, median").unwrap_or(f64::NAN);
        assert!((44.0..50.0).contains(&latency("far")) && latency("near") < 1.0, "{:?}", results.figures);
        assert_eq!((node(&results, "middle", "store hits"), node(&results, "right", "Interests in")), (100, 100));
        assert_eq!(results.figure("near", "satisfied"), Some(100.0));
        assert_eq!(results.groups[1].bins.iter().position(|bin| bin.requests > 0), Some(30));
        Ok(())
    }

    #[test]
    fn the_same_seed_gives_the_same_figures_and_another_seed_others() -> anyhow::Result<()> {
        let lossy = ["link_defaults.loss=0.1", "consumer.0.random_times=true"];
        let figures = |seed| ran(LINE, &lossy, seed).map(|results| results.figures);
        assert_eq!(figures(3)?, figures(3)?);
        assert_ne!(figures(3)?, figures(4)?);
        Ok(())
    }

    #[test]
    fn loss_is_repaired_by_retransmission_and_pings_are_not_sent_again() -> anyhow::Result<()> {
        let results = ran(LINE, &["link_defaults.loss=0.1"], 3)?;
        assert!(results.figure("far", "satisfied").is_some_and(|percent| percent > 95.0), "{:?}", results.figures);
        let pings = ["link_defaults.loss=0.1", "consumer.0.kind=ping", "consumer.0.interval=10ms"];
        let results = ran(LINE, &pings, 3)?;
        assert!(results.figure("far", "expired").is_some_and(|percent| percent > 20.0), "{:?}", results.figures);
        assert_eq!(results.figure("far", "Interests per request that ended"), Some(1.0));
        Ok(())
    }

    /// A square whose upper way is shorter, cut after 10 s.
    const SQUARE: &str = r#"
        duration = "30s"
        routing_delay = "2s"
        link = [
            { a = "left", b = "upper", delay = "5ms" },
            { a = "upper", b = "right", delay = "5ms" },
            { a = "left", b = "lower", delay = "20ms" },
            { a = "lower", b = "right", delay = "20ms" },
        ]
        next_hops = 1
        [[producer]]
        node = "right"
        prefix = "/p"
        [[consumer]]
        name = "probe"
        kind = "ping"
        node = "left"
        prefix = "/p"
        interval = "100ms"
        [[event]]
        at = "10s"
        a = "upper"
        b = "right"
        up = false
    "#;

    #[test]
    fn recomputed_routes_follow_links_after_their_delay() -> anyhow::Result<()> {
        let satisfied = |results: &Results, second: usize| results.groups[0].bins[second].satisfied;
        let fixed = ran(SQUARE, &[], 1)?;
        assert_eq!([5, 10, 25].map(|second| satisfied(&fixed, second)), [10, 0, 0]);
        let followed = ran(SQUARE, &["routing=recomputed"], 1)?;
        assert_eq!([5, 10, 25].map(|second| satisfied(&followed, second)), [10, 0, 10]);
        let before_ms = followed.groups[0].bins[5].latency_median_ms;
        let after_ms = followed.groups[0].bins[25].latency_median_ms;
        assert!((20.0..22.0).contains(&before_ms) && (80.0..82.0).contains(&after_ms), "{before_ms} {after_ms}");
        Ok(())
    }

    #[test]
    fn strategies_and_self_learning_find_the_other_way_themselves() -> anyhow::Result<()> {
        let last = |settings: &[&str]| ran(SQUARE, settings, 1).map(|results| results.groups[0].bins[28].satisfied);
        assert_eq!(last(&["next_hops=4", "strategy=multicast"])?, 10);
        assert_eq!(last(&["routing=flood"])?, 10);
        let retried = ["routing=self-learning", "consumer.0.transmissions=4", "consumer.0.retransmit_after=200ms"];
        assert!(last(&retried)? > 0);
        Ok(())
    }

    #[test]
    fn a_file_of_changes_is_followed() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("t.csv"), "time,a,b,up,delay\n5,left,upper,,30ms\n20,left,upper,down,\n")?;
        let settings = ["changes_file=t.csv", "routing=recomputed", "event=[]"].map(str::to_owned);
        let scenario = Scenario::parse(SQUARE, folder.path(), &settings)?;
        let results = run(&scenario, 1, &OwnStrategies::default(), &mut RunOptions::default())?;
        let latency_ms = |second: usize| results.groups[0].bins[second].latency_median_ms.round();
        assert_eq!([2, 15].map(latency_ms), [20.0, 70.0]);
        assert_eq!(results.groups[0].bins[28].satisfied, 10, "the lower way");
        assert_eq!(results.figure("network", "changes of links"), Some(2.0));
        Ok(())
    }

    #[test]
    fn kinds_of_consumers_do_what_they_say() -> anyhow::Result<()> {
        let file = ran(LINE, &["consumer.0.kind=file", "consumer.0.names=500"], 1)?;
        assert_eq!((file.figure("far", "files fetched"), file.figure("far", "sent again")), (Some(1.0), Some(0.0)));
        let zipf = ["consumer.0.kind=zipf", "consumer.0.catalogue=50", "node_defaults.store_packets=10"];
        let zipf = ran(LINE, &zipf, 1)?;
        let hits = zipf.figure("network", "store hits of all nodes").unwrap_or(0.0);
        assert!((5.0..95.0).contains(&hits), "{hits}");
        let stream = ran(
            LINE,
            &["consumer.0.kind=stream", "consumer.0.names=100000", "consumer.0.interval=20ms", "consumer.0.stop=10s"],
            1,
        )?;
        assert_eq!(stream.groups[0].bins[4].requests, 50);
        assert_eq!(stream.groups[0].bins[20].requests, 0);
        Ok(())
    }

    /// Nodes 80 m apart on a radio channel: each hears its neighbours.
    const RADIO: &str = r#"
        duration = "20s"
        routing = "flood"
        node = [
            { name = "a", x = 0, y = 0 },
            { name = "b", x = 80, y = 0 },
            { name = "c", x = 160, y = 0 },
        ]
        [[air]]
        name = "channel"
        range = 100
        sure = 90
        [[producer]]
        node = "c"
        prefix = "/p"
        [[consumer]]
        name = "probe"
        kind = "ping"
        node = "a"
        prefix = "/p"
        interval = "100ms"
    "#;

    #[test]
    fn radio_carries_interests_over_a_node_between() -> anyhow::Result<()> {
        let results = ran(RADIO, &[], 1)?;
        assert!(results.figure("probe", "satisfied").is_some_and(|percent| percent > 95.0), "{:?}", results.figures);
        let apart = ran(RADIO, &["node.1.y=500"], 1)?;
        assert_eq!(apart.figure("probe", "satisfied"), Some(0.0));
        let segment = RADIO.replace("range = 100\n", "").replace("sure = 90\n", "");
        assert_eq!(ran(&segment, &["node.1.y=500"], 1)?.figure("probe", "satisfied"), Some(100.0));
        Ok(())
    }

    #[test]
    fn a_moving_node_comes_into_range_and_leaves() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("m.csv"), "time,node,x,y\n0,b,80,1000\n10,b,80,0\n20,b,80,-1000\n")?;
        let text = RADIO.replace("{ name = \"b\", x = 80, y = 0 },", "");
        let scenario = Scenario::parse(&text, folder.path(), &["movement_file=m.csv".to_owned()])?;
        let results = run(&scenario, 1, &OwnStrategies::default(), &mut RunOptions::default())?;
        let satisfied: Vec<u64> = results.groups[0].bins.iter().map(|bin| bin.satisfied).collect();
        assert!(satisfied[..9].iter().chain(&satisfied[11..]).all(|count| *count == 0), "{satisfied:?}");
        assert!(satisfied[9] > 0, "{satisfied:?}");
        Ok(())
    }

    #[test]
    fn a_sync_group_learns_every_publication() -> anyhow::Result<()> {
        let text = r#"
            duration = "60s"
            link_defaults = { delay = "10ms" }
            link = [{ a = "hub", b = "x" }, { a = "hub", b = "y" }, { a = "hub", b = "z" }]
            [[sync]]
            prefix = "/chat"
            nodes = ["x", "y", "z"]
            interval = "2s"
            stop = "50s"
        "#;
        let results = ran(text, &[], 1)?;
        assert_eq!(results.figure("sync /chat", "received by the others"), Some(100.0), "{:?}", results.figures);
        let latency_ms = results.figure("sync /chat", "latency, median").unwrap_or(0.0);
        assert!((60.0..200.0).contains(&latency_ms), "{latency_ms}: a sync Interest, and a fetch");
        Ok(())
    }

    #[test]
    fn frames_of_a_link_are_kept_as_pcapng() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let scenario = Scenario::parse(LINE, Path::new("."), &["capture=[\"left middle\"]".to_owned()])?;
        let mut options = RunOptions { captures: Some(folder.path()), progress: None };
        run(&scenario, 1, &OwnStrategies::default(), &mut options)?;
        let bytes = std::fs::read(folder.path().join("left-middle.pcapng"))?;
        let ethernet_frames = bytes.windows(2).filter(|pair| *pair == [0x86, 0x24]).count();
        assert!(bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) && ethernet_frames >= 200, "{ethernet_frames}");
        Ok(())
    }

    #[test]
    fn an_unknown_strategy_or_policy_is_named() {
        for setting in ["strategy=besst-route", "node_defaults.policy=lur"] {
            let error = format!("{:#}", ran(LINE, &[setting], 1).unwrap_err());
            assert!(error.contains(setting.split_once('=').expect("a value").1), "{error}");
        }
    }
}
