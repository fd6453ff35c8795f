//! LogRecord: one line of the router's log (dataset `log/recent`). LogLevel: how much an area logs (`log/levels`).
//!
//! These datasets are ours; NFD has no such datasets. They follow the protocol's rules, so that any management client
//! can fetch them.

use super::element::element;

element! {
    dataset "log/recent":
    /// One entry of `log/recent`.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct LogRecord {
        /// The number of the line since the start, from 1. A gap shows that lines are no longer kept.
        pub number: u64 = 128,
        /// Milliseconds since 1970.
        pub unix_ms: u64 = 129,
        /// `error`, `warn`, `info`, `debug` or `trace`.
        pub level: String = 130,
        /// The part of the router, for example `faces`.
        pub area: String = 131,
        /// What happened, for example `face closed`.
        pub message: String = 132,
        /// To what, and why.
        pub fields: Vec<LogField> = 133,
    }
}

element! {
    element:
    /// One detail of a [`LogRecord`].
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct LogField {
        /// For example `face`.
        pub name: String = 128,
        /// For example `259`.
        pub value: String = 129,
    }
}

element! {
    dataset "log/levels":
    /// One entry of `log/levels`.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct LogAreaLevel {
        /// The part of the router.
        pub area: String = 131,
        /// The least important level that it logs, or `off`.
        pub level: String = 130,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nfd::{decode_dataset, encode_dataset};

    #[test]
    fn a_record_has_these_bytes() {
        let field = LogField { name: "face".into(), value: "9".into() };
        let record = LogRecord {
            number: 3,
            unix_ms: 0x0102,
            level: "info".into(),
            area: "faces".into(),
            message: "up".into(),
            fields: vec![field.clone(), LogField { name: "x".into(), value: String::new() }],
        };
        let wire = [
            &[128, 42, 128, 1, 3, 129, 2, 1, 2][..],
            &[130, 4],
            b"info",
            &[131, 5],
            b"faces",
            &[132, 2],
            b"up",
            &[133, 9, 128, 4],
            b"face",
            &[129, 1, b'9', 133, 5, 128, 1, b'x', 129, 0],
        ]
        .concat();
        assert_eq!(encode_dataset(std::slice::from_ref(&record)), wire);
        assert_eq!(decode_dataset::<LogRecord>(&wire), Ok(vec![record]));
        let level = LogAreaLevel { area: "tag".into(), level: "off".into() };
        let wire = [&[128, 10, 131, 3][..], b"tag", &[130, 3], b"off"].concat();
        assert_eq!(encode_dataset(std::slice::from_ref(&level)), wire);
        assert_eq!(decode_dataset::<LogAreaLevel>(&wire), Ok(vec![level]));
    }
}
