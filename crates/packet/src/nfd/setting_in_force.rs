//! SettingInForce: a setting of the running router, its value, and where the value came from (dataset
//! `status/settings`).
//!
//! This dataset is ours; NFD has no such dataset. It follows the protocol's rules, so that any management client can
//! fetch it.

use super::element::element;

/// The words of [`SettingInForce::source`].
pub mod setting_source {
    /// Nothing names another value.
    pub const DEFAULT: &str = "default";
    /// The configuration file; the place is its path, with the line if the file is ours: `/etc/namewire.toml:7`.
    pub const FILE: &str = "file";
    /// An option of the command that started the router; the place is the option, for example `--workers`.
    pub const OPTION: &str = "option";
    /// A management command, or a state file that restored what one had made.
    pub const COMMAND: &str = "command";
}

element! {
    dataset "status/settings":
    /// One entry of `status/settings`.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct SettingInForce {
        /// The key of a configuration file with its section, for example `cs.capacity`.
        pub key: String = 128,
        /// The value as a configuration file has it (TOML).
        pub value: String = 129,
        /// One of [`setting_source`].
        pub source: String = 130,
        /// Where the source says so.
        pub place: Option<String> = 131,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nfd::{decode_dataset, encode_dataset};

    #[test]
    fn a_setting_has_these_bytes() {
        let of = |place: Option<&str>| SettingInForce {
            key: "k".to_owned(),
            value: "1".to_owned(),
            source: "file".to_owned(),
            place: place.map(str::to_owned),
        };
        let settings = vec![of(Some("a:2")), of(None)];
        let wire = [
            &[128, 17, 128, 1, b'k', 129, 1, b'1', 130, 4][..],
            b"file",
            &[131, 3],
            b"a:2",
            &[128, 12, 128, 1, b'k', 129, 1, b'1', 130, 4],
            b"file",
        ]
        .concat();
        assert_eq!(encode_dataset(&settings), wire);
        assert_eq!(decode_dataset::<SettingInForce>(&wire), Ok(settings));
    }
}
