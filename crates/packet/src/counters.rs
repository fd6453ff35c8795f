//! Counters that are declared once.
//!
//! [`reasons!`](crate::reasons) declares an enum of reasons with one counter per reason.
//! [`counters!`](crate::counters!) declares a struct of counters. The names under which counters are shown, their order
//! and their sum over threads follow from the declaration. So a new counter is one line and cannot be forgotten.
//!
//! The macros are in this crate because the engine, faces, management and the router declare counters, and this is the
//! only crate that all of them use.

/// A counter, or several in a fixed shape.
pub trait Count {
    /// Zero everywhere.
    const ZERO: Self;

    /// Adds the counts of another thread or face.
    fn merge(&mut self, other: &Self);

    /// Passes every number to `visit`, in the order of the declaration.
    fn visit(&mut self, visit: &mut dyn FnMut(&mut u64));
}

impl Count for u64 {
    const ZERO: Self = 0;

    fn merge(&mut self, other: &Self) {
        *self += other;
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        visit(self);
    }
}

/// One counter per reason.
impl<const N: usize> Count for [u64; N] {
    const ZERO: Self = [0; N];

    fn merge(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(sum, count)| *sum += count);
    }

    fn visit(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        self.iter_mut().for_each(visit);
    }
}

/// Declares an enum of reasons for which something is counted, each with its stable name.
///
/// ```
/// namewire_packet::reasons! {
///     /// Why a letter comes back.
///     pub enum Returned {
///         /// There is no such house.
///         NoSuchHouse = "no-such-house",
///         /// The person has moved.
///         Moved = "moved",
///     }
/// }
/// let mut counts = [0_u64; Returned::COUNT];
/// counts[Returned::Moved as usize] += 1;
/// assert_eq!(Returned::named(&counts).collect::<Vec<_>>(), [("no-such-house", 0), ("moved", 1)]);
/// ```
#[macro_export]
macro_rules! reasons {
    ($(#[$about:meta])* $vis:vis enum $reasons:ident { $($(#[$doc:meta])* $reason:ident = $name:literal,)+ }) => {
        $crate::names! {
            $(#[$about])*
            #[repr(u8)]
            $vis enum $reasons {
                $($(#[$doc])* $reason = $name,)+
            }
        }

        impl $reasons {
            /// How many there are.
            $vis const COUNT: usize = $reasons::ALL.len();

            /// The counters of all reasons, with their names.
            $vis fn named(counts: &[u64; $reasons::COUNT]) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                $reasons::ALL.iter().map(|reason| reason.name()).zip(*counts)
            }
        }
    };
}

/// Declares a struct of counters. The dataset `status/drops` shows those with a name under it.
///
/// ```
/// use namewire_packet::counters::Count;
///
/// namewire_packet::counters! {
///     /// What a post office counts.
///     pub struct Letters {
///         /// Delivered.
///         pub delivered: u64,
///         /// Lost.
///         pub lost: u64 = "post.lost",
///     }
/// }
/// let mut sum = Letters::default();
/// sum.merge(&Letters { delivered: 9, lost: 1 });
/// assert_eq!(sum.named(), [("post.lost", 1)]);
/// ```
#[macro_export]
macro_rules! counters {
    (
        $(#[$about:meta])*
        $vis:vis struct $counters:ident {
            $($(#[$doc:meta])* $field_vis:vis $field:ident: $kind:ty $(= $name:literal)?),+ $(,)?
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis struct $counters {
            $($(#[$doc])* $field_vis $field: $kind,)+
        }

        impl $counters {
            /// The counters that have a name, with their names.
            $vis fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$($(($name, self.$field),)?)+]
            }
        }

        impl Default for $counters {
            fn default() -> Self {
                <Self as $crate::counters::Count>::ZERO
            }
        }

        impl $crate::counters::Count for $counters {
            const ZERO: Self = $counters { $($field: <$kind as $crate::counters::Count>::ZERO,)+ };

            fn merge(&mut self, other: &Self) {
                $($crate::counters::Count::merge(&mut self.$field, &other.$field);)+
            }

            fn visit(&mut self, visit: &mut dyn FnMut(&mut u64)) {
                $($crate::counters::Count::visit(&mut self.$field, visit);)+
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    reasons! {
        /// Why something is lost.
        enum Lost {
            /// It fell.
            Fallen = "fallen",
            /// It was taken.
            Taken = "taken",
        }
    }

    counters! {
        /// Counters of every shape.
        struct Everything {
            seen: u64 = "all.seen",
            silent: u64,
            lost: [u64; Lost::COUNT],
        }
    }

    #[test]
    fn every_declared_counter_is_in_the_sum() {
        let mut one = Everything::default();
        let mut number = 0;
        one.visit(&mut |count| {
            number += 1;
            *count = number;
        });
        assert_eq!(one, Everything { seen: 1, silent: 2, lost: [3, 4] });
        assert_eq!(one.named(), [("all.seen", 1)]);
        let mut sum = one;
        sum.merge(&one);
        assert_eq!(sum, Everything { seen: 2, silent: 4, lost: [6, 8] });
        assert_eq!(Lost::named(&one.lost).collect::<Vec<_>>(), [("fallen", 3), ("taken", 4)]);
        assert_eq!((Lost::Fallen as usize, Lost::Taken.name()), (0, "taken"));
    }
}
