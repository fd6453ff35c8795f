//! FIB entries gained next hops: which pending Interests are sent to them?

use crate::{
    DropReason, FaceId,
    ground::measured::PartClock,
    pipeline::{call::Call, watched::with_strategy},
    state::{parts::Parts, pit_state::Rare},
    verdict::next_hops::delegations,
};
use namewire_packet::{Interest, NameBuf};

/// Most Interests that one scan for new next hops sends. [`Output`](crate::Output) holds all their bytes at once.
pub(crate) const SENDS_PER_SCAN: usize = 1024;

/// Offers pending Interests that use these FIB entries (by name, or by ForwardingHint) to their strategies, on behalf
/// of a downstream that may be served through the face. `gained` is in ascending order. Cost: one pass over the PIT,
/// however many next hops there are, and at most 1,024 Interests sent.
pub(crate) fn new_next_hops<C: PartClock>(parts: &mut Parts, call: &mut Call<'_, '_, C>, gained: &[(NameBuf, FaceId)]) {
    debug_assert!(gained.is_sorted());
    let Parts { tables, scratch, .. } = parts;
    let mut entries = std::mem::take(&mut scratch.entries_to_visit);
    let wire = &mut scratch.interest_copy;
    entries.clear();
    entries.extend(tables.pit_cs.pit_iter_ids().filter(|&id| {
        if !tables.state(id).rare.has(Rare::BY_HINT) {
            return is_covered(gained, tables.name_of(id));
        }
        wire.clear();
        tables.pit_cs.pit_interest(id, wire);
        let interest = Interest::parse(wire);
        interest.is_ok_and(|interest| delegations(&interest).any(|name| is_covered(gained, name.value())))
    }));
    for &entry in &entries {
        let mut room = SENDS_PER_SCAN.saturating_sub(call.outbound.out.transmits.len());
        with_strategy(parts, call, entry, None, |strategy, context| {
            let Some(prefix) = context.prefix() else { return };
            let from = gained.partition_point(|(name, _)| name.value() < prefix);
            let under = gained[from..].partition_point(|(name, _)| name.value() == prefix);
            for (_, face) in &gained[from..from + under] {
                if !context.choose_ingress_for(*face) {
                    continue;
                }
                match room {
                    0 => context.count_drop(DropReason::NextHopScanFull),
                    _ => strategy.after_new_next_hop(context, *face),
                }
                room = room.saturating_sub(1);
            }
        });
    }
    parts.scratch.entries_to_visit = entries;
}

/// True if one of the names, which are in ascending order, is a prefix of `name`.
fn is_covered(sorted: &[(NameBuf, FaceId)], name: &[u8]) -> bool {
    let mut reach = name;
    loop {
        // A prefix of `name` sorts no later than this one. If it is another one, it is also a prefix of this one.
        let behind = sorted.partition_point(|(other, _)| other.value() <= reach);
        let Some((last, _)) = behind.checked_sub(1).map(|place| &sorted[place]) else { return false };
        let common = name.iter().zip(last.value()).take_while(|(a, b)| a == b).count();
        if common == last.value().len() {
            return true;
        }
        reach = &name[..common];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_that_cover_one_are_found() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut name = |longest: usize| {
            let mut name = NameBuf::new();
            for _ in 0..random.usize(1..=longest) {
                name.push_generic(["a", "b", "bb"][random.usize(0..3)].as_bytes());
            }
            name
        };
        let mut covered = 0;
        for round in 0..2000 {
            let mut sorted: Vec<_> = (0..round % 20).map(|_| (name(4), FaceId(1))).collect();
            sorted.sort_unstable();
            let name = name(6);
            let expected = sorted.iter().any(|(prefix, _)| prefix.as_name().is_prefix_of(&name.as_name()));
            assert_eq!(is_covered(&sorted, name.value()), expected, "{name} {sorted:?}");
            covered += usize::from(expected);
        }
        assert!((200..1800).contains(&covered), "{covered}");
        assert!(is_covered(&[(NameBuf::new(), FaceId(1))], name(2).value()), "everything is under /");
    }
}
