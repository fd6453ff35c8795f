//! Files that say where nodes are at what time.
//!
//! Two forms are read: CSV with the columns `time` (seconds), `node`, `x` and `y` (metres), and the movement files of
//! ns-2 (`set X_`, `set Y_` and `setdest`), which BonnMotion, SUMO and others write.

use anyhow::{Context as _, ensure};
use namewire_sim::Track;
use std::collections::BTreeMap;
use std::path::Path;

/// Most points of a file.
const POINTS_MAX: usize = 20_000_000;

/// Time in nanoseconds, and a place in metres.
type Point = (u64, [f64; 2]);

/// The tracks of a file, by node.
///
/// # Errors
/// If it cannot be read, a line is malformed, or it has no points or too many.
pub fn tracks(file: &Path) -> anyhow::Result<BTreeMap<String, Track>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    of_text(&text).with_context(|| file.display().to_string())
}

fn of_text(text: &str) -> anyhow::Result<BTreeMap<String, Track>> {
    let points = if text.lines().any(|line| line.contains("$ns_") || line.contains("$node_")) {
        of_ns2(text)?
    } else {
        of_csv(text)?
    };
    let count: usize = points.values().map(Vec::len).sum();
    ensure!((1..=POINTS_MAX).contains(&count), "{count} points, 1 to {POINTS_MAX} are allowed");
    Ok(points.into_iter().map(|(node, points)| (node, Track::through(points))).collect())
}

fn of_csv(text: &str) -> anyhow::Result<BTreeMap<String, Vec<Point>>> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let mut points: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for row in reader.deserialize::<(f64, String, f64, f64)>() {
        let (time_s, node, x_m, y_m) = row.context("a line has a time, a node, x and y")?;
        points.entry(node).or_default().push((nanos(time_s)?, [x_m, y_m]));
    }
    Ok(points)
}

/// A node that a `setdest` sends somewhere goes there at a speed, from where it then is.
fn of_ns2(text: &str) -> anyhow::Result<BTreeMap<String, Vec<Point>>> {
    let mut starts: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    let mut orders: Vec<(f64, String, [f64; 2], f64)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split(['"', ' ', '\t']).filter(|word| !word.is_empty()).collect();
        let number_of = |word: &str| word.parse::<f64>().with_context(|| format!("line {}: {word:?}", number + 1));
        match words[..] {
            [node, "set", axis @ ("X_" | "Y_"), at] => {
                starts.entry(node_of(node)).or_default()[usize::from(axis == "Y_")] = number_of(at)?;
            }
            ["$ns_", "at", time, node, "setdest", x, y, speed] => {
                let to = [number_of(x)?, number_of(y)?];
                orders.push((number_of(time)?, node_of(node), to, number_of(speed)?));
            }
            _ => {}
        }
    }
    orders.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut points: BTreeMap<String, Vec<Point>> =
        starts.into_iter().map(|(node, place)| (node, vec![(0, place)])).collect();
    for (time_s, node, [to_x, to_y], speed_m_per_s) in orders {
        let at_ns = nanos(time_s)?;
        let of_node = points.entry(node).or_default();
        let [x, y] = Track::through(of_node.clone()).at(at_ns);
        // The former way ends where the node is now.
        of_node.retain(|point| point.0 < at_ns);
        of_node.push((at_ns, [x, y]));
        let distance_m = ((to_x - x).powi(2) + (to_y - y).powi(2)).sqrt();
        if distance_m > 0.0 && speed_m_per_s > 0.0 {
            of_node.push((nanos(time_s + distance_m / speed_m_per_s)?, [to_x, to_y]));
        }
    }
    Ok(points)
}

/// `7` of `$node_(7)`.
fn node_of(word: &str) -> String {
    word.trim_start_matches("$node_(").trim_end_matches(')').to_owned()
}

fn nanos(time_s: f64) -> anyhow::Result<u64> {
    ensure!((0.0..1e9).contains(&time_s), "{time_s} is no time in seconds");
    Ok((time_s * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S_NS: u64 = 1_000_000_000;

    #[test]
    fn csv_gives_places_at_times() -> anyhow::Result<()> {
        let tracks = of_text("time,node,x,y\n0,a,0,0\n10,a,100,50\n0,b,7,8\n")?;
        assert_eq!(tracks["a"].at(5 * S_NS), [50.0, 25.0]);
        assert_eq!(tracks["b"].at(99 * S_NS), [7.0, 8.0]);
        assert!(of_text("time,node,x,y\nnow,a,0,0\n").is_err());
        assert!(of_text("time,node,x,y\n").is_err());
        Ok(())
    }

    #[test]
    fn a_movement_file_of_ns_2_gives_speeds() -> anyhow::Result<()> {
        let text = "$node_(0) set X_ 10.0\n$node_(0) set Y_ 20.0\n$node_(0) set Z_ 0.0\n\
                    $ns_ at 5.0 \"$node_(0) setdest 110.0 20.0 10.0\"\n$ns_ at 10.0 \"$node_(0) setdest 60.0 70.0 5.0\"\n";
        let track = &of_text(text)?["0"];
        assert_eq!(track.at(0), [10.0, 20.0]);
        assert_eq!(track.at(7 * S_NS), [30.0, 20.0]);
        assert_eq!(track.at(10 * S_NS), [60.0, 20.0], "it turns before it is there");
        assert_eq!(track.at(15 * S_NS), [60.0, 45.0]);
        assert_eq!(track.at(99 * S_NS), [60.0, 70.0]);
        Ok(())
    }
}
