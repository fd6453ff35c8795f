//! LogRecord: one line of the router's log (dataset `log/recent`). LogLevel: how much an area logs (`log/levels`).
//!
//! These datasets are ours; NFD has no such datasets. They follow the protocol's rules, so that any management client
//! can fetch them.

use super::{
    element::element,
    numbers::types::{
        DATASET_ENTRY, LOG_AREA, LOG_FIELD, LOG_FIELD_NAME, LOG_FIELD_VALUE, LOG_LEVEL, LOG_MESSAGE, LOG_NUMBER,
        LOG_TIME,
    },
};

element! {
    element DATASET_ENTRY:
    /// One entry of `log/recent`: 128 { 128 number, 129 time, 130 level text, 131 area text, 132 message text,
    /// 133 field * }.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct LogRecord {
        /// The number of the line since the start, from 1. A gap shows that lines are no longer kept.
        pub number: u64 = LOG_NUMBER,
        /// Milliseconds since 1970.
        pub unix_ms: u64 = LOG_TIME,
        /// `error`, `warn`, `info`, `debug` or `trace`.
        pub level: String = LOG_LEVEL,
        /// The part of the router, for example `faces`.
        pub area: String = LOG_AREA,
        /// What happened, for example `face closed`.
        pub message: String = LOG_MESSAGE,
        /// To what, and why.
        pub fields: Vec<LogField> = LOG_FIELD,
    }
}

element! {
    element:
    /// 133 { 128 name text, 129 value text }: one detail of a [`LogRecord`].
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct LogField {
        /// For example `face`.
        pub name: String = LOG_FIELD_NAME,
        /// For example `259`.
        pub value: String = LOG_FIELD_VALUE,
    }
}

element! {
    element DATASET_ENTRY:
    /// One entry of `log/levels`: 128 { 131 area text, 130 level text }.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize))]
    pub struct LogAreaLevel {
        /// The part of the router.
        pub area: String = LOG_AREA,
        /// The least important level that it logs, or `off`.
        pub level: String = LOG_LEVEL,
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
