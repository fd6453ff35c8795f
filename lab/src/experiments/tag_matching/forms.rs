//! Forms: the tables under test, behind one interface that searches a slice of queries at a time.

use std::fmt;
use std::ops::ControlFlow;

use anyhow::ensure;
use namewire_tables::pages::PageSize;
use namewire_tagnet::Descriptor;
use namewire_tagnet::matching::burst_trie::{BurstTrie, PausedSearch};
use namewire_tagnet::matching::vector::{BitOrder, Layout, SearchCounts, VectorOptions, VectorTable};
use namewire_tagnet::matching::{Entry, SubsetTable};

/// Bytes of a vector's cell.
pub(super) const CELL_BYTES: u64 = 8;

namewire_packet::names! {
    /// A form of the table.
    pub enum Form {
        /// The paper's vector, without compression.
        Plain = "no compression",
        /// The paper's vector with popular bits first.
        BitPermutation = "bit perm",
        /// Also without terminal chains; siblings' subtrees first to last.
        SiblingOrder = "bit perm + chain, SOL",
        /// The paper's final form.
        Paper = "bit perm + chain, SROL",
        /// The vector with our three steps.
        OurVector = "vector, our steps",
        /// The router's own table without partitions, several packets at a time.
        BurstTrieWhole = "burst trie, one partition",
        /// The router's own table, one packet at a time.
        BurstTrie = "burst trie",
        /// The router's own table, several packets at a time.
        BurstTrieBatches = "burst trie, batches",
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Form {
    /// All forms of the paper's own switches.
    pub(super) const OF_THE_PAPER: [Form; 4] = [Form::Plain, Form::BitPermutation, Form::SiblingOrder, Form::Paper];
    /// The forms with work beyond the paper.
    pub(super) const BEYOND_THE_PAPER: [Form; 4] =
        [Form::OurVector, Form::BurstTrieWhole, Form::BurstTrie, Form::BurstTrieBatches];

    /// The options of the forms that are vectors.
    fn options(self) -> Option<VectorOptions> {
        let paper = VectorOptions::PAPER;
        Some(match self {
            Form::Plain => VectorOptions { bit_order: BitOrder::Unchanged, remove_chains: false, ..paper },
            Form::BitPermutation => VectorOptions { remove_chains: false, ..paper },
            Form::SiblingOrder => VectorOptions { layout: Layout::SiblingOrder, ..paper },
            Form::Paper => paper,
            Form::OurVector => VectorOptions::FASTEST,
            Form::BurstTrieWhole | Form::BurstTrie | Form::BurstTrieBatches => return None,
        })
    }

    /// A table of these entries.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub(super) fn build(self, entries: Vec<Entry>) -> anyhow::Result<Table> {
        let Some(options) = self.options() else { return self.build_burst_trie(entries) };
        let vector = VectorTable::build(entries, options)?;
        let memory = vector.memory();
        let parts = vec![
            ("cells", memory.cell_bytes()),
            ("chains", memory.chain_bytes),
            ("values outside cells", memory.value_bytes),
        ];
        let searches: Box<dyn Searches> = match Form::OF_THE_PAPER.contains(&self) {
            true => Box::new(PaperWalk(vector)),
            false => Box::new(OwnWalk(vector)),
        };
        Ok(Table { form: self, descriptors: memory.descriptors, nodes: Some(memory.nodes), parts, searches })
    }

    fn build_burst_trie(self, entries: Vec<Entry>) -> anyhow::Result<Table> {
        let capacity = entries.len();
        let trie = match self {
            Form::BurstTrieWhole => BurstTrie::build_partitioned(entries, capacity, PageSize::default(), usize::MAX)?,
            _ => BurstTrie::build(entries, capacity, PageSize::default())?,
        };
        let memory = trie.memory();
        let parts = [
            ("partitions", memory.partitions),
            ("nodes", memory.nodes),
            ("heads", memory.heads),
            ("lengths", memory.lengths),
            ("tails", memory.tails),
            ("values", memory.values),
            ("headers", memory.headers),
            ("unused", memory.unused),
        ];
        let parts = parts.into_iter().map(|(part, bytes)| (part, bytes as u64)).collect();
        let is_in_batches = self != Form::BurstTrie;
        let searches = Box::new(RouterWalk { trie, is_in_batches });
        Ok(Table { form: self, descriptors: memory.descriptors as u64, nodes: None, parts, searches })
    }
}

/// Nodes of the trie of these entries with the bits in the order of the descriptor.
///
/// # Errors
/// If there is not enough memory.
pub(super) fn unpermuted_nodes(entries: Vec<Entry>) -> anyhow::Result<u64> {
    let options = VectorOptions { bit_order: BitOrder::Unchanged, ..VectorOptions::PAPER };
    Ok(VectorTable::build(entries, options)?.memory().nodes)
}

/// A table of one form.
pub(super) struct Table {
    pub(super) form: Form,
    pub(super) descriptors: u64,
    /// Of a vector: nodes of the trie in this form's order of bits, before chains are removed.
    pub(super) nodes: Option<u64>,
    /// Bytes of each part.
    pub(super) parts: Vec<(&'static str, u64)>,
    searches: Box<dyn Searches>,
}

impl Table {
    pub(super) fn bytes(&self) -> u64 {
        self.parts.iter().map(|(_, bytes)| bytes).sum()
    }

    pub(super) fn bytes_per_descriptor(&self) -> f64 {
        self.bytes() as f64 / self.descriptors.max(1) as f64
    }

    /// Cells of a vector.
    pub(super) fn cells(&self) -> Option<u64> {
        let cell_bytes = self.parts.iter().find_map(|(part, bytes)| (*part == "cells").then_some(*bytes));
        cell_bytes.map(|bytes| bytes / CELL_BYTES)
    }

    pub(super) fn search(&self, goal: Goal, queries: &[Descriptor]) -> Totals {
        self.searches.search(goal, queries)
    }

    /// The steps of the searches, where the form is the router's own.
    pub(super) fn steps(&self, goal: Goal, queries: &[Descriptor]) -> Option<u64> {
        queries.iter().map(|query| self.searches.steps(goal, query)).sum()
    }

    /// What the searches do, where the form counts it.
    pub(super) fn counts(&self, goal: Goal, queries: &[Descriptor]) -> Option<SearchCounts> {
        queries.iter().map(|query| self.searches.counts(goal, query)).try_fold(SearchCounts::default(), |sum, one| {
            let one = one?;
            let (lists, cells) = (sum.lists + one.lists, sum.cells + one.cells);
            Some(SearchCounts { lists, cells, chains: sum.chains + one.chains })
        })
    }

    /// Compares the answers to one query with a scan of all entries.
    ///
    /// # Errors
    /// If they differ.
    pub(super) fn check(&self, query: &Descriptor, scanned: &Scanned) -> anyhow::Result<()> {
        let (all, largest) = (self.search(Goal::All, &[*query]), self.search(Goal::Largest, &[*query]));
        ensure!(all == scanned.all, "{}: {all:?} subsets of {query:?}, not {:?}", self.form, scanned.all);
        ensure!(largest == scanned.largest, "{}: largest {largest:?} of {query:?}, not {scanned:?}", self.form);
        let best = self.searches.lowest_largest(query);
        ensure!(best == scanned.best, "{}: {best:?} of {query:?}, not {:?}", self.form, scanned.best);
        Ok(())
    }
}

/// What a search looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// *Find All Subsets*, k = ∞.
    All,
    /// *Find Largest Subset*.
    Largest,
}

impl Goal {
    pub(super) const BOTH: [Goal; 2] = [Goal::All, Goal::Largest];

    /// The paper's name of the algorithm.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Goal::All => "FAS",
            Goal::Largest => "FLS",
        }
    }
}

/// The answers to some queries. Forms that find the same have the same totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Subsets found, or queries that have one.
    pub(super) found: u64,
    /// Of all subsets the values, or of the largest subsets the weights: the paper's walk finds any of the largest.
    sum: u64,
}

impl Totals {
    /// Of both.
    pub(super) fn plus(self, other: Totals) -> Totals {
        Totals { found: self.found + other.found, sum: self.sum + other.sum }
    }

    fn add(&mut self, what: u32) {
        self.found += 1;
        self.sum += u64::from(what);
    }
}

/// The answers to one query by a scan of all entries.
#[derive(Debug)]
pub(super) struct Scanned {
    all: Totals,
    largest: Totals,
    best: Option<Entry>,
}

impl Scanned {
    pub(super) fn new(entries: &[Entry], query: &Descriptor) -> Self {
        let mut scanned = Scanned { all: Totals::default(), largest: Totals::default(), best: None };
        for entry in entries.iter().filter(|entry| entry.descriptor.is_subset_of(query)) {
            scanned.all.add(entry.value);
            if scanned.best.is_none_or(|best| entry.is_preferred_to(&best)) {
                scanned.best = Some(*entry);
            }
        }
        scanned.best.into_iter().for_each(|best| scanned.largest.add(best.descriptor.weight()));
        scanned
    }
}

/// Searches a slice of queries at once, so that the choice of the table costs nothing for each query.
trait Searches: Sync {
    fn search(&self, goal: Goal, queries: &[Descriptor]) -> Totals;

    /// What a search does, where the table counts it.
    fn counts(&self, goal: Goal, query: &Descriptor) -> Option<SearchCounts>;

    /// The steps of a search, where the table counts them.
    fn steps(&self, _: Goal, _: &Descriptor) -> Option<u64> {
        None
    }

    /// Of the largest subsets, the lowest.
    fn lowest_largest(&self, query: &Descriptor) -> Option<Entry>;
}

fn find_all(table: &impl SubsetTable, queries: &[Descriptor]) -> Totals {
    let mut totals = Totals::default();
    for query in queries {
        table.find_all(query, |value| {
            totals.add(value);
            ControlFlow::Continue(())
        });
    }
    totals
}

fn add_largest(queries: &[Descriptor], find: impl Fn(&Descriptor) -> Option<Entry>) -> Totals {
    let mut totals = Totals::default();
    queries.iter().filter_map(find).for_each(|entry| totals.add(entry.descriptor.weight()));
    totals
}

/// The vector with the paper's Algorithm 2, which takes the first largest subset that it meets.
struct PaperWalk(VectorTable);

impl Searches for PaperWalk {
    fn search(&self, goal: Goal, queries: &[Descriptor]) -> Totals {
        match goal {
            Goal::All => find_all(&self.0, queries),
            Goal::Largest => add_largest(queries, |query| self.0.find_first_largest(query)),
        }
    }

    fn counts(&self, goal: Goal, query: &Descriptor) -> Option<SearchCounts> {
        Some(match goal {
            Goal::All => self.0.find_all_counted(query, |_| ControlFlow::Continue(())),
            Goal::Largest => self.0.find_first_largest_counted(query).1,
        })
    }

    fn lowest_largest(&self, query: &Descriptor) -> Option<Entry> {
        self.0.find_largest(query)
    }
}

/// The vector with our rule: of several largest subsets, the lowest.
struct OwnWalk(VectorTable);

impl Searches for OwnWalk {
    fn search(&self, goal: Goal, queries: &[Descriptor]) -> Totals {
        match goal {
            Goal::All => find_all(&self.0, queries),
            Goal::Largest => add_largest(queries, |query| self.0.find_largest(query)),
        }
    }

    fn counts(&self, goal: Goal, query: &Descriptor) -> Option<SearchCounts> {
        Some(match goal {
            Goal::All => self.0.find_all_counted(query, |_| ControlFlow::Continue(())),
            Goal::Largest => self.0.find_largest_counted(query).1,
        })
    }

    fn lowest_largest(&self, query: &Descriptor) -> Option<Entry> {
        self.0.find_largest(query)
    }
}

/// The router's own table.
struct RouterWalk {
    trie: BurstTrie,
    is_in_batches: bool,
}

impl Searches for RouterWalk {
    fn search(&self, goal: Goal, queries: &[Descriptor]) -> Totals {
        let (view, mut totals) = (self.trie.view(), Totals::default());
        match (goal, self.is_in_batches) {
            (Goal::All, false) => return find_all(&view, queries),
            (Goal::Largest, false) => return add_largest(queries, |query| view.find_largest(query)),
            (Goal::All, true) => view.find_all_of_each(queries, |_, value| {
                totals.add(value);
                ControlFlow::Continue(())
            }),
            (Goal::Largest, true) => view.find_largest_of_each(queries, |_, largest| {
                largest.into_iter().for_each(|entry| totals.add(entry.descriptor.weight()));
            }),
        }
        totals
    }

    fn counts(&self, _: Goal, _: &Descriptor) -> Option<SearchCounts> {
        None
    }

    fn steps(&self, goal: Goal, query: &Descriptor) -> Option<u64> {
        let (view, mut paused, mut left) = (self.trie.view(), PausedSearch::default(), usize::MAX);
        let is_over = match goal {
            Goal::All => view.find_all_within(query, &mut paused, &mut left, |_| ControlFlow::Continue(())).is_ready(),
            Goal::Largest => view.find_largest_within(query, &mut paused, &mut left, |_| true).is_ready(),
        };
        is_over.then_some((usize::MAX - left) as u64)
    }

    fn lowest_largest(&self, query: &Descriptor) -> Option<Entry> {
        self.trie.view().find_largest(query)
    }
}
