//! String differentiation: must a core router keep the names that it forwards?
//!
//! Source: Yuan15 §4.2-4.3. A core router that gets only names under its routes need not verify them, only distinguish
//! them; edge routers verify. So its forwarding table keeps not the rules but what differs among them. A *route
//! controller* keeps the rules in full and sends the table update instructions.
//!
//! ```text
//!            prefix, number                     instructions                names
//!  routes ─────────────────▶ RouteController ────────────────▶ ForwardingTable ◀──── packets
//!                            │ Rib: names, in full             │ Differentiator: root rules, lossy
//!                            └ DifferentiatorController        └ Suffixes: longer rules, exact
//! ```
//!
//! | question | module |
//! | --- | --- |
//! | what distinguishes root rules without their names? (the interface of the structures below) | [`differentiator`] |
//! | which slot has the fingerprint of this name? | [`fingerprint_hash_table`] |
//! | under which root rule is this name, by fingerprints? which rules are in slots, which in the collision table? | [`fht_forwarding`], [`fht_controller`] |
//! | whose bits come to which leaf (sBPT, FPT)? which bits are examined? in how few bytes? | [`patricia_trie`], [`key_bits`], [`patricia_node`], [`patricia_leaf`] |
//! | how does a trie without names change? who knows the names, and which names must a leaf distinguish? | [`patricia_updates`], [`patricia_controller`], [`local_fingerprint`] |
//! | the trie as a forwarding table | [`patricia_table`] |
//! | a billion names at once, without a controller | [`bulk_load`] (FHT), [`patricia_bulk`] |
//! | where does exactly this string lead (collision table, suffixes)? | [`exact_table`] |
//! | which longer rule below this root rule? | [`suffixes`] |
//! | what does a forwarding engine need to know? | [`forwarding_table`] |
//! | one controller and two tables of any kind, for a router | [`split`] |
//! | which rules are there, in full? which instructions does a route make? | [`rib`], [`route_controller`] |
//!
//! Guarantee: for a name that lies under a rule, the answer always equals that of an exact table, whatever the hashes
//! are. There are two exceptions: the root prefix may be excluded ([`DefaultRoute`]); and rules of different lengths,
//! in fingerprint hash tables with a default table ([`fht_controller`]). A name that lies under no rule may get any
//! answer. The dissertation's rules have one component (*exact string differentiation*, no rule is a prefix of
//! another), and §4.2's suffixes are in a separate structure. Here one structure distinguishes root rules of all
//! lengths.

pub mod bulk_load;
pub mod differentiator;
pub mod exact_table;
pub mod fht_controller;
pub mod fht_forwarding;
pub mod fingerprint_hash_table;
pub mod forwarding_table;
pub mod key_bits;
pub mod local_fingerprint;
pub mod patricia_bulk;
pub mod patricia_controller;
pub mod patricia_leaf;
pub mod patricia_node;
pub mod patricia_table;
pub mod patricia_trie;
pub mod patricia_updates;
pub mod rib;
pub mod route_controller;
pub mod split;
pub mod suffixes;
mod wide_leads;

pub use fht_controller::FhtController;
pub use fht_forwarding::{FhtOptions, FhtTable};
pub use fingerprint_hash_table::SlotFormat;
pub use forwarding_table::{ForwardingTable, Instruction};
pub use key_bits::Fingerprints;
pub use patricia_bulk::PatriciaBulkLoad;
pub use patricia_controller::PatriciaController;
pub use patricia_leaf::LeafLayout;
pub use patricia_table::{PatriciaOptions, PatriciaTable};
pub use route_controller::{DefaultRoute, RouteController};

use differentiator::{DifferentiatorController, InstructionOf};
use namewire_tables::fib::FibRefusal;
use namewire_tables::fib::{PrefixMatch, PrefixTable};
use namewire_tables::head_room::GrowthGuard;
use namewire_tables::name_hash::HashKey;
use namewire_tables::pages::PageSize;
use rib::Rib;
use std::io;

/// A controller and one table that does what it says.
pub struct StringDifferentiation<C: DifferentiatorController> {
    controller: RouteController<C>,
    table: ForwardingTable<C::Table>,
    /// Empty between calls.
    instructions: Vec<Instruction<InstructionOf<C>>>,
    growth: GrowthGuard,
}

impl<C: DifferentiatorController> StringDifferentiation<C> {
    /// An empty one for at most this many rules, of a controller's and a table's part made for each other. The
    /// RIB's index is over as many hashes as the controller's part wants ([`Rib::new`]).
    ///
    /// # Errors
    /// If the kernel does not map the first pages.
    pub fn from_parts(
        capacity: usize,
        rib: Rib,
        differentiator: C,
        table: C::Table,
        pages: PageSize,
        default_route: DefaultRoute,
    ) -> io::Result<Self> {
        let table = ForwardingTable::new(*rib.key(), table, pages)?;
        let controller = RouteController::new(capacity, rib, differentiator, default_route);
        let growth = GrowthGuard::new(controller.bytes() + table.bytes());
        let mut whole = Self { controller, table, instructions: Vec::new(), growth };
        whole.controller.start(&mut whole.instructions);
        whole.apply();
        Ok(whole)
    }

    /// The controller.
    pub fn controller(&self) -> &RouteController<C> {
        &self.controller
    }

    /// The table.
    pub fn table(&self) -> &ForwardingTable<C::Table> {
        &self.table
    }

    /// The table, to set its options.
    pub fn table_mut(&mut self) -> &mut ForwardingTable<C::Table> {
        &mut self.table
    }

    fn apply(&mut self) {
        for instruction in self.instructions.drain(..) {
            self.table.apply(&instruction);
        }
    }
}

impl StringDifferentiation<FhtController> {
    /// An empty fingerprint hash table for at most this many rules.
    ///
    /// # Errors
    /// If they take more than 2³⁰ slots, the format is none, or the kernel does not map the memory.
    pub fn with_fingerprint_hash_table(
        capacity: usize,
        key: HashKey,
        options: FhtOptions,
        default_route: DefaultRoute,
    ) -> io::Result<Self> {
        let (differentiator, table) = (FhtController::new(capacity, options)?, FhtTable::new(capacity, options)?);
        let rib = Rib::new(key, differentiator.hashes())?;
        Self::from_parts(capacity, rib, differentiator, table, options.pages, default_route)
    }
}

impl<C: DifferentiatorController> PrefixTable for StringDifferentiation<C> {
    fn insert(&mut self, prefix: &[u8], number: u32) -> Result<Option<u32>, FibRefusal> {
        let Self { controller, table, growth, .. } = self;
        if !growth.allows_change(controller.len(), || controller.bytes() + table.bytes())
            && !controller.contains(prefix)
        {
            return Err(FibRefusal::NoMemory);
        }
        let before = controller.insert(prefix, number, &mut self.instructions)?;
        self.apply();
        Ok(before)
    }

    fn remove(&mut self, prefix: &[u8]) -> Option<u32> {
        let before = self.controller.remove(prefix, &mut self.instructions);
        self.apply();
        before
    }

    fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        self.table.longest_prefix_match_batch(names, out);
    }

    fn len(&self) -> usize {
        self.controller.len()
    }

    fn bytes(&self) -> usize {
        self.controller.bytes()
            + self.table.bytes()
            + self.instructions.capacity() * size_of::<Instruction<InstructionOf<C>>>()
    }

    fn forwarding_bytes(&self) -> usize {
        self.table.bytes()
    }

    fn is_lossless(&self) -> bool {
        false
    }
}
