//! Declared faces, routes and strategies. Management commands make them; when the declarations change, commands make
//! the difference.
//!
//! [`Keeper::apply`] compares the declarations with what it has made before. It removes routes and then faces that are
//! no longer declared, and resets strategies to their default. It makes declarations that are new, different or lost.
//! It changes nothing else. [`Keeper::retry`] tries again to make a connection, or a face whose host had no address or
//! that closed ([`Keeper::note_lost`]). It does not retry commands that management refused.
//!
//! A face has an address as its remote end. If its URI has a host name, and the face is down or has received nothing
//! for a minute, the name is looked up again. If the name no longer has that address, [`Keeper::retry`] makes the face
//! again. [`Keeper::names`] returns the names to look up. [`Names::look_up`] needs no keeper, so others can use it
//! meanwhile.
//!
//! A declared face is known by its URI as written. Two spellings of one address lead to one face, which stays until
//! neither spelling is declared.

mod host_names;
mod keeper;
mod undeclared;

pub use host_names::{Addresses, Due, Names};
pub use keeper::{Keeper, Lost, Problem};
use namewire_engine::StrategyTable;
use namewire_management::DEFAULT_CHOICES;
use namewire_packet::NameBuf;
use std::collections::BTreeMap;

/// The strategies of every new node, by whole names.
fn default_strategies() -> BTreeMap<NameBuf, NameBuf> {
    let mut table = StrategyTable::default();
    let name = |text: &str| text.parse::<NameBuf>().expect("names in the source are well-formed");
    let whole = |text: &str, table: &mut StrategyTable| {
        let name = name(text);
        table.resolve(&name).map_or(name, |(_, instance)| instance)
    };
    DEFAULT_CHOICES.iter().map(|(prefix, strategy)| (name(prefix), whole(strategy, &mut table))).collect()
}
