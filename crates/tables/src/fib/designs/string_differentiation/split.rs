//! Split: one route controller and the forwarding tables that follow it, whatever tells rules apart.
//!
//! Source: Yuan15 §4.3.6. A router keeps its names once, in the controller, and two tables, of which
//! workers look at one. This gives the kinds of controllers, tables and instructions one type each.
//!
//! Cost, bytes, limits: those of the parts. Who may write: the owner.

use super::differentiator::{DifferentiatorController, InstructionOf};
use super::rib::Rib;
use super::{
    DefaultRoute, FhtController, FhtOptions, FhtTable, ForwardingTable, Instruction, PatriciaController,
    PatriciaOptions, PatriciaTable, RouteController,
};
use crate::fib::FibRefusal;
use crate::fib::designs::PrefixMatch;
use crate::name_hash::HashKey;
use std::io;

/// A controller and two tables, empty and alike.
pub struct Split {
    /// The controller.
    pub controller: SplitController,
    /// The tables that are to do what it says.
    pub tables: [SplitTable; 2],
}

/// A route controller.
pub enum SplitController {
    /// Of fingerprint hash tables.
    Fht(Box<RouteController<FhtController>>),
    /// Of Patricia tries.
    Patricia(Box<RouteController<PatriciaController>>),
}

/// A forwarding table.
pub enum SplitTable {
    /// A fingerprint hash table.
    Fht(Box<ForwardingTable<FhtTable>>),
    /// A Patricia trie.
    Patricia(Box<ForwardingTable<PatriciaTable>>),
}

/// The instructions of an update, in order.
pub type InstructionsOf<C> = Vec<Instruction<InstructionOf<C>>>;

/// What an update of the routes means for tables.
pub enum SplitInstructions {
    /// For fingerprint hash tables.
    Fht(InstructionsOf<FhtController>),
    /// For Patricia tries.
    Patricia(InstructionsOf<PatriciaController>),
}

impl Split {
    /// Of fingerprint hash tables for at most so many rules.
    ///
    /// # Errors
    /// If they take more than 2³⁰ slots, the format is none, or the kernel does not map the memory.
    pub fn fht(capacity: usize, key: HashKey, options: FhtOptions, default_route: DefaultRoute) -> io::Result<Self> {
        let differentiator = FhtController::new(capacity, options)?;
        let rib = Rib::new(key, differentiator.hash_bits())?;
        let table = || Ok::<_, io::Error>(Box::new(ForwardingTable::new(key, FhtTable::new(capacity, options)?)?));
        let controller = RouteController::new(capacity, rib, differentiator, default_route);
        let mut start = Vec::new();
        controller.start(&mut start);
        let mut tables = [SplitTable::Fht(table()?), SplitTable::Fht(table()?)];
        let start = SplitInstructions::Fht(start);
        tables.iter_mut().for_each(|table| table.apply(&start));
        Ok(Self { controller: SplitController::Fht(Box::new(controller)), tables })
    }

    /// Of Patricia tries, sBPT or FPT.
    ///
    /// # Errors
    /// If the kernel maps no memory.
    pub fn patricia(
        key: HashKey,
        options: PatriciaOptions,
        may_use_second_hash: bool,
        default_route: DefaultRoute,
    ) -> io::Result<Self> {
        let differentiator = PatriciaController::new(options, may_use_second_hash)?;
        let rib = Rib::new(key, u64::BITS)?;
        let table = || Ok::<_, io::Error>(Box::new(ForwardingTable::new(key, PatriciaTable::new(options)?)?));
        let controller = RouteController::new(options.capacity_rules, rib, differentiator, default_route);
        let mut start = Vec::new();
        controller.start(&mut start);
        let mut tables = [SplitTable::Patricia(table()?), SplitTable::Patricia(table()?)];
        let start = SplitInstructions::Patricia(start);
        tables.iter_mut().for_each(|table| table.apply(&start));
        Ok(Self { controller: SplitController::Patricia(Box::new(controller)), tables })
    }
}

impl SplitController {
    /// As [`RouteController::insert`].
    ///
    /// # Errors
    /// [`FibRefusal`]; then nothing changed.
    pub fn insert(&mut self, prefix: &[u8], number: u32) -> Result<(Option<u32>, SplitInstructions), FibRefusal> {
        fn insert<C: DifferentiatorController>(
            controller: &mut RouteController<C>,
            prefix: &[u8],
            number: u32,
        ) -> Result<(Option<u32>, InstructionsOf<C>), FibRefusal> {
            let mut instructions = Vec::new();
            let before = controller.insert(prefix, number, &mut instructions)?;
            Ok((before, instructions))
        }
        Ok(match self {
            Self::Fht(controller) => {
                let (before, instructions) = insert(controller, prefix, number)?;
                (before, SplitInstructions::Fht(instructions))
            }
            Self::Patricia(controller) => {
                let (before, instructions) = insert(controller, prefix, number)?;
                (before, SplitInstructions::Patricia(instructions))
            }
        })
    }

    /// As [`RouteController::remove`]; `None`: the prefix was not there.
    pub fn remove(&mut self, prefix: &[u8]) -> Option<(u32, SplitInstructions)> {
        match self {
            Self::Fht(controller) => {
                let mut instructions = Vec::new();
                Some((controller.remove(prefix, &mut instructions)?, SplitInstructions::Fht(instructions)))
            }
            Self::Patricia(controller) => {
                let mut instructions = Vec::new();
                Some((controller.remove(prefix, &mut instructions)?, SplitInstructions::Patricia(instructions)))
            }
        }
    }

    /// As [`RouteController::contains`].
    pub fn contains(&self, prefix: &[u8]) -> bool {
        match self {
            Self::Fht(controller) => controller.contains(prefix),
            Self::Patricia(controller) => controller.contains(prefix),
        }
    }

    /// As [`RouteController::moved_by_insertion`].
    pub fn moved_by_insertion(&self, prefix: &[u8]) -> usize {
        match self {
            Self::Fht(controller) => controller.moved_by_insertion(prefix),
            Self::Patricia(controller) => controller.moved_by_insertion(prefix),
        }
    }

    /// As [`RouteController::moved_by_removal`].
    pub fn moved_by_removal(&self, prefix: &[u8]) -> usize {
        match self {
            Self::Fht(controller) => controller.moved_by_removal(prefix),
            Self::Patricia(controller) => controller.moved_by_removal(prefix),
        }
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Fht(controller) => controller.len(),
            Self::Patricia(controller) => controller.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Octets of memory, as allocated.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Fht(controller) => controller.bytes(),
            Self::Patricia(controller) => controller.bytes(),
        }
    }
}

impl SplitTable {
    /// Does them.
    ///
    /// # Panics
    /// If they are for another kind of table.
    pub fn apply(&mut self, instructions: &SplitInstructions) {
        match (self, instructions) {
            (Self::Fht(table), SplitInstructions::Fht(instructions)) => {
                instructions.iter().for_each(|instruction| table.apply(instruction));
            }
            (Self::Patricia(table), SplitInstructions::Patricia(instructions)) => {
                instructions.iter().for_each(|instruction| table.apply(instruction));
            }
            _ => panic!("instructions of another kind of controller"),
        }
    }

    /// As [`ForwardingTable::longest_prefix_match_batch`].
    ///
    /// # Panics
    /// As that.
    pub fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        match self {
            Self::Fht(table) => table.longest_prefix_match_batch(names, out),
            Self::Patricia(table) => table.longest_prefix_match_batch(names, out),
        }
    }

    /// Octets of memory, as allocated.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Fht(table) => table.bytes(),
            Self::Patricia(table) => table.bytes(),
        }
    }
}

impl SplitInstructions {
    /// Octets of memory, roughly: what single instructions point to is not counted.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Fht(instructions) => size_of_val(&instructions[..]),
            Self::Patricia(instructions) => size_of_val(&instructions[..]),
        }
    }
}
