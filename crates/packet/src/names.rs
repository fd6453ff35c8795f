//! Enums whose values have names: [`names!`](crate::names!) declares values and names once.

/// Declares an enum of plain values, each with its stable name in configuration, records and counters.
///
/// ```
/// namewire_packet::names! {
///     /// When trees change.
///     #[derive(Default)]
///     pub enum Season {
///         /// Leaves come.
///         #[default]
///         Spring = "spring",
///         /// Leaves go.
///         Autumn = "autumn",
///     }
/// }
/// assert_eq!(Season::ALL.map(Season::name), ["spring", "autumn"]);
/// assert_eq!(Season::find("autumn"), Some(Season::Autumn));
/// ```
#[macro_export]
macro_rules! names {
    ($(#[$about:meta])* $vis:vis enum $kind:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $kind {
            $($(#[$doc])* $value,)+
        }

        #[allow(dead_code, reason = "some enums need only a part of this")]
        impl $kind {
            /// Every value, in the order of the declaration.
            $vis const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// The name, which does not change.
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }

            /// The value with this name.
            $vis fn find(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }
    };
}
