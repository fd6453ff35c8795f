//! Names: which name does the next Interest have?
//!
//! A name is a prefix and a number of eight letters, or a line of a file. The order is that of the list, or random:
//! each name equally often, or by Zipf's law (the first names are the most popular).

use crate::packet_parts::{NUMBER_BYTES, digits};
use crate::zipf::Zipf;
use fastrand::Rng;
use namewire_packet::{Name, NameBuf, tlv};

/// Where names come from.
#[derive(Clone, Debug)]
pub enum NameSet {
    /// A prefix and a number below the count.
    Numbered {
        /// Of all names.
        prefix: NameBuf,
        /// How many there are, at most 2³².
        count: u64,
    },
    /// These.
    Listed(Vec<NameBuf>),
}

impl NameSet {
    /// How many names there are.
    pub fn count(&self) -> u64 {
        match self {
            NameSet::Numbered { count, .. } => *count,
            NameSet::Listed(names) => names.len() as u64,
        }
    }
}

/// In which order names are asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// One after the other, and from the beginning again.
    Sequential,
    /// Each equally often.
    Uniform,
    /// By Zipf's law with this exponent.
    Zipf(f64),
}

/// Chooses names.
pub struct Names {
    set: NameSet,
    order: Order,
    zipf: Option<Zipf>,
    random: Rng,
    next: u64,
    step: u64,
}

impl Names {
    /// The names of one of several flows: in sequential order, flow `flow` of `flows` has every `flows`-th name.
    pub fn new(set: NameSet, order: Order, seed: u64, flow: u64, flows: u64) -> Self {
        let zipf = match order {
            Order::Zipf(exponent) => Some(Zipf::new(set.count(), exponent)),
            Order::Sequential | Order::Uniform => None,
        };
        let random = Rng::with_seed(seed ^ flow.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Names { set, order, zipf, random, next: flow, step: flows }
    }

    /// The place of the next name in the list.
    pub fn next_number(&mut self) -> u64 {
        let count = self.set.count();
        match self.order {
            Order::Sequential => {
                let number = self.next % count;
                self.next += self.step;
                number
            }
            Order::Uniform => self.random.u64(..count),
            Order::Zipf(_) => self.zipf.map_or(0, |zipf| zipf.place(&mut self.random)),
        }
    }

    /// Appends the name at this place as a Name element.
    pub fn write(&self, number: u64, out: &mut Vec<u8>) {
        match &self.set {
            NameSet::Numbered { prefix, .. } => write_numbered(out, prefix.as_name(), number),
            NameSet::Listed(names) => write_name(out, names[number as usize].value(), &[]),
        }
    }

    /// Random numbers, for times.
    pub fn random(&mut self) -> &mut Rng {
        &mut self.random
    }
}

fn write_numbered(out: &mut Vec<u8>, prefix: Name<'_>, number: u64) {
    let mut component = [0; 2 + NUMBER_BYTES];
    (component[0], component[1]) = (tlv::types::GENERIC_COMPONENT as u8, NUMBER_BYTES as u8);
    component[2..].copy_from_slice(&digits(number as u32));
    write_name(out, prefix.value(), &component);
}

fn write_name(out: &mut Vec<u8>, value: &[u8], more: &[u8]) {
    tlv::write_var_number(out, tlv::types::NAME.into());
    tlv::write_var_number(out, (value.len() + more.len()) as u64);
    out.extend_from_slice(value);
    out.extend_from_slice(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(order: Order, count: u64, seed: u64, (flow, flows): (u64, u64), wanted: usize) -> Vec<String> {
        let set = NameSet::Numbered { prefix: "/p".parse().unwrap(), count };
        let mut names = Names::new(set, order, seed, flow, flows);
        let mut next = || {
            let mut wire = Vec::new();
            let number = names.next_number();
            names.write(number, &mut wire);
            let element = tlv::read_element(&wire).unwrap();
            Name::parse_value(element.value).unwrap().to_string()
        };
        (0..wanted).map(|_| next()).collect()
    }

    #[test]
    fn flows_share_the_names_in_order() {
        assert_eq!(
            texts(Order::Sequential, 5, 1, (0, 2), 4),
            ["/p/00000000", "/p/00000002", "/p/00000004", "/p/00000001"]
        );
        assert_eq!(texts(Order::Sequential, 5, 1, (1, 2), 2), ["/p/00000001", "/p/00000003"]);
        let mut listed = Names::new(NameSet::Listed(vec!["/a/b".parse().unwrap()]), Order::Sequential, 1, 0, 1);
        let mut wire = Vec::new();
        let number = listed.next_number();
        listed.write(number, &mut wire);
        assert_eq!(wire, [7, 6, 8, 1, b'a', 8, 1, b'b']);
    }

    #[test]
    fn the_first_names_are_the_popular_ones() {
        let names = texts(Order::Zipf(1.0), 1000, 1, (0, 1), 10_000);
        let of = |number: u64| names.iter().filter(|name| **name == format!("/p/{number:08x}")).count();
        // The first has 1 / H(1000) = 13.4 % of all.
        assert!((1200..1480).contains(&of(0)), "{}", of(0));
        assert!((580..760).contains(&of(1)), "{}", of(1));
        assert_eq!(names, texts(Order::Zipf(1.0), 1000, 1, (0, 1), 10_000), "a seed tells all");
        assert_ne!(names, texts(Order::Zipf(1.0), 1000, 2, (0, 1), 10_000));
        let uniform = texts(Order::Uniform, 4, 1, (0, 1), 4000);
        assert!((0..4u64).all(|number| {
            let count = uniform.iter().filter(|name| **name == format!("/p/{number:08x}")).count();
            (900..1100).contains(&count)
        }));
    }
}
