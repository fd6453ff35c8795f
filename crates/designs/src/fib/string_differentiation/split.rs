//! Split: one route controller with two forwarding tables, as the router's FIB takes them.
//!
//! A router keeps two copies of its FIB: readers look at one while the other is changed. For a lossy design, the
//! copies are two [`ForwardingTable`]s, and one [`RouteController`] instructs both (Yuan15 §4.3.6).
//!
//! Cost, bytes: those of the parts. Writers: the owner.

use super::differentiator::{Differentiator, DifferentiatorController};
use super::patricia_controller::PatriciaController;
use super::rib::Rib;
use super::{
    DefaultRoute, FhtController, FhtOptions, FhtTable, ForwardingTable, Instruction, PatriciaOptions, PatriciaTable,
    RouteController,
};
use namewire_tables::HashKey;
use namewire_tables::fib::{
    FibRefusal, PrefixMatch, Split, SplitController, SplitInstructions, SplitTable, SplitUpdate,
};
use std::any::Any;
use std::io;

/// The instructions of an update, in order.
struct Instructions<I>(Vec<Instruction<I>>);

impl<I: Send + Sync + 'static> SplitInstructions for Instructions<I> {
    fn bytes(&self) -> usize {
        size_of_val(&self.0[..])
    }
}

impl<C: DifferentiatorController> SplitController for RouteController<C> {
    fn insert(&mut self, prefix: &[u8], number: u32) -> Result<SplitUpdate, FibRefusal> {
        let mut instructions = Vec::new();
        let before = Self::insert(self, prefix, number, &mut instructions)?;
        Ok(SplitUpdate { before, instructions: Box::new(Instructions(instructions)) })
    }

    fn remove(&mut self, prefix: &[u8]) -> Option<SplitUpdate> {
        let mut instructions = Vec::new();
        let before = Self::remove(self, prefix, &mut instructions)?;
        Some(SplitUpdate { before: Some(before), instructions: Box::new(Instructions(instructions)) })
    }

    fn contains(&self, prefix: &[u8]) -> bool {
        Self::contains(self, prefix)
    }

    fn moved_by_insertion(&self, prefix: &[u8]) -> usize {
        Self::moved_by_insertion(self, prefix)
    }

    fn moved_by_removal(&self, prefix: &[u8]) -> usize {
        Self::moved_by_removal(self, prefix)
    }

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }
}

impl<D: Differentiator> SplitTable for ForwardingTable<D> {
    fn apply(&mut self, instructions: &dyn SplitInstructions) {
        let instructions: &dyn Any = instructions;
        let instructions = instructions.downcast_ref::<Instructions<D::Instruction>>();
        let instructions = instructions.expect("instructions of the controller that this table was made for");
        instructions.0.iter().for_each(|instruction| Self::apply(self, instruction));
    }

    fn longest_prefix_match_batch(&self, names: &[&[u8]], out: &mut [Option<PrefixMatch>]) {
        Self::longest_prefix_match_batch(self, names, out);
    }

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }
}

/// Of fingerprint hash tables for at most this many rules.
///
/// # Errors
/// If they take more than 2³⁰ slots, the format is none, or the kernel does not map the memory.
pub fn fht(capacity: usize, key: HashKey, options: FhtOptions, default_route: DefaultRoute) -> io::Result<Split> {
    let differentiator = FhtController::new(capacity, options)?;
    let rib = Rib::new(key, differentiator.hashes())?;
    let table = || ForwardingTable::new(key, FhtTable::new(capacity, options)?, options.pages);
    let controller = RouteController::new(capacity, rib, differentiator, default_route);
    Ok(split(controller, [table()?, table()?]))
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
) -> io::Result<Split> {
    let differentiator = PatriciaController::new(options, may_use_second_hash)?;
    let rib = Rib::new(key, u64::MAX)?;
    let table = || ForwardingTable::new(key, PatriciaTable::new(options)?, options.pages);
    let controller = RouteController::new(options.capacity_rules, rib, differentiator, default_route);
    Ok(split(controller, [table()?, table()?]))
}

/// The tables begin as the controller says.
fn split<C: DifferentiatorController>(controller: RouteController<C>, tables: [ForwardingTable<C::Table>; 2]) -> Split {
    let mut start = Vec::new();
    controller.start(&mut start);
    let tables = tables.map(|mut table| -> Box<dyn SplitTable> {
        start.iter().for_each(|instruction| table.apply(instruction));
        Box::new(table)
    });
    Split { controller: Box::new(controller), tables }
}
