//! Network graphs: which node has a link to which.
//!
//! A graph is text ([`text_lines`]), one link a line: two node names between `|`, tabs or spaces. Further columns are
//! ignored: the AS relationships of CAIDA (`as1|as2|relation`) are such a text. Nodes get numbers in the order in which
//! the text names them. A link counts once, in both directions; a link from a node to itself is dropped.
//!
//! Left out and counted: lines that are too long, and lines with fewer than two columns. A graph is refused if half of
//! its lines are such. Limits: [`LINKS_MAX`].
//!
//! Without a file: preferential attachment (Barabási and Albert 1999). Each new node links to [`INVENTED_LINKS`] nodes,
//! each chosen in proportion to its links. The AS graph too has few nodes with many links, and 2.8 links a node.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use anyhow::{Context as _, ensure};

use crate::text_lines;

/// Most links of a graph.
pub const LINKS_MAX: usize = 50_000_000;
/// Links of a new node of an invented graph.
pub const INVENTED_LINKS: usize = 3;

/// Nodes and links.
#[derive(Clone, Debug)]
pub struct NetworkGraph {
    /// What it is called.
    pub title: String,
    /// The neighbours of each node, lowest first.
    pub neighbours: Vec<Vec<u32>>,
    /// Lines that were no links.
    pub left_out: usize,
}

impl NetworkGraph {
    /// The graph in `given`; without a file, an invented one with this number of nodes.
    ///
    /// # Errors
    /// If the file cannot be read or is no graph.
    pub fn given_or_invented(given: Option<&Path>, nodes: u32, seed: u64) -> anyhow::Result<Self> {
        let Some(path) = given else { return Ok(Self::invented(nodes, seed)) };
        let text = text_lines::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::of_text(&text_lines::title(path), text).with_context(|| format!("no graph: {}", path.display()))
    }

    /// The links of a text.
    ///
    /// # Errors
    /// If it cannot be read, is beyond the limits, or half of its lines are no links.
    pub fn of_text(title: &str, text: impl BufRead) -> anyhow::Result<Self> {
        let mut numbers: HashMap<Box<[u8]>, u32> = HashMap::new();
        let mut neighbours: Vec<Vec<u32>> = Vec::new();
        let (mut links, mut left_out) = (0, 0);
        let too_long = text_lines::for_each(text, |line| {
            let separates = |byte: &u8| matches!(byte, b'|' | b'\t' | b' ');
            let mut columns = line.split(separates).filter(|column| !column.is_empty());
            let (Some(one), Some(other)) = (columns.next(), columns.next()) else {
                left_out += 1;
                return Ok(());
            };
            let [one, other] = [one, other].map(|name| {
                *numbers.entry(name.into()).or_insert_with(|| {
                    neighbours.push(Vec::new());
                    neighbours.len() as u32 - 1
                })
            });
            links += 1;
            ensure!(links <= LINKS_MAX, "more than {LINKS_MAX} links");
            neighbours[one as usize].push(other);
            neighbours[other as usize].push(one);
            Ok(())
        })?;
        let left_out = left_out + too_long;
        ensure!(links > 0, "it has no links");
        ensure!(left_out <= links, "half of its lines are no links");
        Ok(Self::of_neighbours(title, neighbours, left_out))
    }

    fn invented(nodes: u32, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); nodes as usize];
        // Each node as often as it has links.
        let mut ends: Vec<u32> = vec![0];
        for node in 1..nodes {
            for _ in 0..INVENTED_LINKS {
                let other = ends[random.usize(..ends.len())];
                neighbours[node as usize].push(other);
                neighbours[other as usize].push(node);
            }
            ends.extend(&neighbours[node as usize]);
            ends.extend([node; INVENTED_LINKS]);
        }
        Self::of_neighbours("invented", neighbours, 0)
    }

    fn of_neighbours(title: &str, mut neighbours: Vec<Vec<u32>>, left_out: usize) -> Self {
        for (node, neighbours) in (0..).zip(&mut neighbours) {
            neighbours.sort_unstable();
            neighbours.dedup();
            neighbours.retain(|&neighbour| neighbour != node);
        }
        Self { title: title.to_owned(), neighbours, left_out }
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u32 {
        self.neighbours.len() as u32
    }

    /// The number of links, each counted once.
    pub fn links(&self) -> usize {
        self.neighbours.iter().map(Vec::len).sum::<usize>() / 2
    }

    /// The node with most neighbours; of several, the lowest number.
    pub fn largest_degree(&self) -> u32 {
        (0..self.nodes()).min_by_key(|&node| std::cmp::Reverse(self.neighbours[node as usize].len())).unwrap_or(0)
    }

    /// How many links each node is away from `source`; `u32::MAX` if no path leads to it.
    pub fn distances(&self, source: u32) -> Vec<u32> {
        let mut distances = vec![u32::MAX; self.neighbours.len()];
        distances[source as usize] = 0;
        let mut order = vec![source];
        let mut place = 0;
        while let Some(&node) = order.get(place) {
            place += 1;
            for &neighbour in &self.neighbours[node as usize] {
                if distances[neighbour as usize] == u32::MAX {
                    distances[neighbour as usize] = distances[node as usize] + 1;
                    order.push(neighbour);
                }
            }
        }
        distances
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_once_and_in_both_directions() -> anyhow::Result<()> {
        let graph = NetworkGraph::of_text("g", &b"# as\n7|3|-1\n3|7|0\n3 \t 9\n9|9|2\nalone\n"[..])?;
        assert_eq!(graph.neighbours, [vec![1], vec![0, 2], vec![1]]);
        assert_eq!((graph.nodes(), graph.links(), graph.left_out, graph.largest_degree()), (3, 2, 1, 1));
        assert_eq!(graph.distances(0), [0, 1, 2]);
        Ok(())
    }

    #[test]
    fn what_is_no_graph_is_refused() {
        for text in ["", "# nothing\n", "a\nb\nc|d\n"] {
            assert!(NetworkGraph::of_text("g", text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(NetworkGraph::given_or_invented(Some(Path::new("/nonexistent")), 1, 1).is_err());
    }

    #[test]
    fn an_invented_graph_is_connected_and_has_hubs() -> anyhow::Result<()> {
        let graph = NetworkGraph::given_or_invented(None, 2_000, 1)?;
        assert_eq!((graph.nodes(), graph.neighbours.clone()), (2_000, NetworkGraph::invented(2_000, 1).neighbours));
        assert!(graph.distances(1_999).iter().all(|&distance| distance < 20));
        assert!((5_000..=6_000).contains(&graph.links()), "{}", graph.links());
        assert!(graph.neighbours[graph.largest_degree() as usize].len() > 50);
        Ok(())
    }
}
