//! Graphs of routers with delays by distance.

use super::{LinkRow, delay_text};
use anyhow::ensure;
use fastrand::Rng;

/// Signals in fibre: two thirds of the speed of light.
const FIBRE_M_PER_S: f64 = 2e8;

/// Routers at random places in a square, and the shortest links between them that were asked for. A router that these
/// leave alone gets a link to the nearest of the others, so the network is connected.
///
/// # Errors
/// If there are too few routers, or more links than pairs.
pub fn geometric(nodes: usize, links: usize, side_km: f64, seed: u64) -> anyhow::Result<Vec<LinkRow>> {
    ensure!((2..=20_000).contains(&nodes), "2 to 20000 nodes");
    ensure!(links < nodes * (nodes - 1) / 2, "{nodes} nodes have fewer pairs than {links}");
    let mut rng = Rng::with_seed(seed);
    let places: Vec<[f64; 2]> = (0..nodes).map(|_| [rng.f64(), rng.f64()]).collect();
    let distance =
        |a: usize, b: usize| ((places[a][0] - places[b][0]).powi(2) + (places[a][1] - places[b][1]).powi(2)).sqrt();
    let mut pairs: Vec<(f64, usize, usize)> =
        (0..nodes).flat_map(|b| (0..b).map(move |a| (a, b))).map(|(a, b)| (distance(a, b), a, b)).collect();
    pairs.sort_by(|one, other| one.0.total_cmp(&other.0));
    // First a shortest tree over all (Kruskal), then the shortest of the rest.
    let mut part: Vec<usize> = (0..nodes).collect();
    let mut is_chosen = vec![false; pairs.len()];
    for (number, &(_, a, b)) in pairs.iter().enumerate() {
        let (of_a, of_b) = (part[a], part[b]);
        if of_a != of_b {
            is_chosen[number] = true;
            part.iter_mut().filter(|part| **part == of_b).for_each(|part| *part = of_a);
        }
    }
    let mut more = links.saturating_sub(nodes - 1);
    for chosen in is_chosen.iter_mut().filter(|chosen| !**chosen) {
        if more == 0 {
            break;
        }
        *chosen = true;
        more -= 1;
    }
    let chosen = pairs.iter().zip(is_chosen).filter(|(_, chosen)| *chosen);
    Ok(chosen.map(|(&(length, a, b), _)| row(a, b, length * side_km * 1e3 / FIBRE_M_PER_S)).collect())
}

/// Routers on a grid, each linked to its neighbours, which are this far away.
///
/// # Errors
/// If a side has no router.
pub fn grid(width: usize, height: usize, spacing_km: f64) -> anyhow::Result<Vec<LinkRow>> {
    ensure!(width >= 1 && height >= 1 && width * height >= 2, "a grid has at least two nodes");
    ensure!(width.saturating_mul(height) <= 100_000, "a grid has 100000 nodes at most");
    let delay_s = spacing_km * 1e3 / FIBRE_M_PER_S;
    let mut rows = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let node = y * width + x;
            if x + 1 < width {
                rows.push(row(node, node + 1, delay_s));
            }
            if y + 1 < height {
                rows.push(row(node, node + width, delay_s));
            }
        }
    }
    Ok(rows)
}

/// Preferential attachment (Barabási and Albert 1999): each new router gets `links` links to others, chosen in
/// proportion to the links that these have. Delays are uniform up to a maximum.
///
/// # Errors
/// If there are too few routers.
pub fn hubs(nodes: usize, links: usize, delay_max_ms: f64, seed: u64) -> anyhow::Result<Vec<LinkRow>> {
    ensure!(links >= 1 && nodes > links && nodes <= 100_000, "more nodes than links of each, 100000 at most");
    let mut rng = Rng::with_seed(seed);
    // Each end of a link is one chance.
    let mut chances: Vec<usize> = (0..links).collect();
    let mut rows = Vec::new();
    for node in links..nodes {
        let mut chosen = Vec::new();
        while chosen.len() < links {
            let other = chances[rng.usize(0..chances.len())];
            if !chosen.contains(&other) {
                chosen.push(other);
            }
        }
        for other in chosen {
            chances.extend([node, other]);
            rows.push(row(other, node, rng.f64() * delay_max_ms / 1e3));
        }
    }
    Ok(rows)
}

fn row(a: usize, b: usize, delay_s: f64) -> LinkRow {
    LinkRow { a: format!("r{a}"), b: format!("r{b}"), delay: delay_text(delay_s), up: "up" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn is_connected(rows: &[LinkRow]) -> bool {
        let mut reached: BTreeSet<&str> = rows.first().map(|row| row.a.as_str()).into_iter().collect();
        loop {
            let before = reached.len();
            for row in rows {
                if reached.contains(row.a.as_str()) || reached.contains(row.b.as_str()) {
                    reached.extend([row.a.as_str(), row.b.as_str()]);
                }
            }
            if reached.len() == before {
                let all: BTreeSet<&str> = rows.iter().flat_map(|row| [row.a.as_str(), row.b.as_str()]).collect();
                return reached == all;
            }
        }
    }

    #[test]
    fn every_graph_is_connected_and_has_the_links_asked_for() -> anyhow::Result<()> {
        let plane = geometric(200, 600, 1_000.0, 7)?;
        assert_eq!((plane.len(), is_connected(&plane)), (600, true));
        assert_eq!(plane, geometric(200, 600, 1_000.0, 7)?);
        assert_ne!(plane, geometric(200, 600, 1_000.0, 8)?);
        let grid = grid(4, 3, 10.0)?;
        assert_eq!((grid.len(), is_connected(&grid), grid[0].delay.as_str()), (17, true, "0.050ms"));
        let hubs = hubs(300, 2, 10.0, 1)?;
        assert_eq!((hubs.len(), is_connected(&hubs)), (596, true));
        let of_first = hubs.iter().filter(|row| row.a == "r0" || row.a == "r1").count();
        assert!(of_first > 20, "{of_first}: the first have the most");
        Ok(())
    }
}
