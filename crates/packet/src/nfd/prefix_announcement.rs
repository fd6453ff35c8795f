//! Prefix announcement: a producer's signed statement that it serves a prefix.
//!
//! Source: management.md §5. Data `/<prefix>/32=PA/v=<n>/seg=0` of ContentType 5, whose Content is
//! { ExpirationPeriod 109, \[ValidityPeriod 253 { NotBefore 254, NotAfter 255 }\] }; other elements of
//! non-critical type are skipped. The signature is not checked here: the caller decides which signers it trusts.

use crate::{
    Component, Data, DataBuilder, Name, NameBuf,
    tlv::{self, Reader, types},
};

/// ContentType of an announcement.
pub const CONTENT_TYPE_PREFIX_ANNOUNCEMENT: u64 = 5;

const EXPIRATION_PERIOD: u32 = 109;
const VALIDITY_PERIOD: u32 = 253;
const NOT_BEFORE: u32 = 254;
const NOT_AFTER: u32 = 255;

/// Components after the prefix.
const SUFFIX_LEN: usize = 3;

/// Why Data is no prefix announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnouncementError {
    /// The name does not end as an announcement's does.
    #[error("the name does not end in 32=PA, a version and seg=0")]
    Name,
    /// Its ContentType is not a prefix announcement's.
    #[error("ContentType is not 5")]
    ContentType,
    /// The Content cannot be read.
    #[error("the Content is no sequence of TLV elements that are known or may be skipped")]
    Content,
    /// It has no ExpirationPeriod.
    #[error("there is no ExpirationPeriod")]
    NoExpiration,
    /// The validity period has no beginning or end, or not in the form YYYYMMDDThhmmss.
    #[error("the ValidityPeriod cannot be read")]
    Validity,
}

/// A prefix announcement.
#[derive(Clone, Copy, Debug)]
pub struct PrefixAnnouncement<'a> {
    /// The announced prefix.
    pub prefix: Name<'a>,
    /// Later statements have higher versions.
    pub version: u64,
    /// Longest life of a route from it, in milliseconds.
    pub expiration_ms: u64,
    /// First and last second since 1970 at which it is valid.
    pub validity_unix_s: Option<(u64, u64)>,
}

impl<'a> PrefixAnnouncement<'a> {
    /// Reads the announcement in `data`. The signature is not checked.
    ///
    /// # Errors
    /// If name, ContentType or Content of `data` is not a prefix announcement's.
    pub fn read(data: &Data<'a>) -> Result<Self, AnnouncementError> {
        let name = data.name();
        let prefix_len = name.len().checked_sub(SUFFIX_LEN).ok_or(AnnouncementError::Name)?;
        let keyword = Component { type_number: types::KEYWORD_COMPONENT, value: b"PA" };
        let [keyword_found, version, segment] = [0, 1, 2].map(|place| name.get(prefix_len + place));
        let version = version.and_then(|version| version.version()).ok_or(AnnouncementError::Name)?;
        if keyword_found != Some(keyword) || segment.and_then(|segment| segment.segment()) != Some(0) {
            return Err(AnnouncementError::Name);
        }
        if data.content_type() != CONTENT_TYPE_PREFIX_ANNOUNCEMENT {
            return Err(AnnouncementError::ContentType);
        }
        let mut read =
            PrefixAnnouncement { prefix: name.prefix(prefix_len), version, expiration_ms: 0, validity_unix_s: None };
        read.read_content(data.content())?;
        Ok(read)
    }

    fn read_content(&mut self, content: &[u8]) -> Result<(), AnnouncementError> {
        let mut reader = Reader::new(content);
        let mut expiration_ms = None;
        while let Some(element) = reader.next_element().map_err(|_| AnnouncementError::Content)? {
            match element.type_number {
                EXPIRATION_PERIOD if expiration_ms.is_none() => {
                    let period = tlv::read_nni(element.value).map_err(|_| AnnouncementError::Content)?;
                    expiration_ms = Some(period);
                }
                VALIDITY_PERIOD => self.validity_unix_s = Some(read_validity(element.value)?),
                other if crate::is_ignorable(other) => {}
                _ => return Err(AnnouncementError::Content),
            }
        }
        self.expiration_ms = expiration_ms.ok_or(AnnouncementError::NoExpiration)?;
        Ok(())
    }

    /// The lifetime of a route created from it now, in milliseconds; 0 if it is not valid now.
    pub fn lifetime_ms(&self, now_unix_ms: u64) -> u64 {
        match self.validity_unix_s {
            None => self.expiration_ms,
            Some((not_before, _)) if now_unix_ms < not_before.saturating_mul(1000) => 0,
            Some((_, not_after)) => {
                // The last second counts whole.
                let end_ms = not_after.saturating_add(1).saturating_mul(1000);
                self.expiration_ms.min(end_ms.saturating_sub(now_unix_ms))
            }
        }
    }
}

/// Writes an announcement of `prefix`, signed with a digest: it does not authenticate the sender.
pub fn announce_with_digest(prefix: Name<'_>, version: u64, expiration_ms: u64) -> Vec<u8> {
    let mut name: NameBuf = prefix.to_buf();
    name.push(Component { type_number: types::KEYWORD_COMPONENT, value: b"PA" });
    name.push_version(version);
    name.push_segment(0);
    let mut content = Vec::new();
    tlv::write_nni(&mut content, EXPIRATION_PERIOD, expiration_ms);
    DataBuilder::new(&name).content_type(CONTENT_TYPE_PREFIX_ANNOUNCEMENT).content(&content).sign_digest()
}

fn read_validity(value: &[u8]) -> Result<(u64, u64), AnnouncementError> {
    let mut reader = Reader::new(value);
    let mut bounds = [None; 2];
    while let Some(element) = reader.next_element().map_err(|_| AnnouncementError::Validity)? {
        let bound = match element.type_number {
            NOT_BEFORE => &mut bounds[0],
            NOT_AFTER => &mut bounds[1],
            other if crate::is_ignorable(other) => continue,
            _ => return Err(AnnouncementError::Validity),
        };
        *bound = Some(read_timestamp(element.value).ok_or(AnnouncementError::Validity)?);
    }
    bounds[0].zip(bounds[1]).ok_or(AnnouncementError::Validity)
}

/// `YYYYMMDDThhmmss` in UTC as seconds since 1970; earlier times count as 0.
fn read_timestamp(text: &[u8]) -> Option<u64> {
    let number = |digits: &[u8]| {
        let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
        digits.iter().try_fold(0, |number, byte| Some(10 * number + digit(byte)?))
    };
    if text.len() != 15 || text[8] != b'T' {
        return None;
    }
    let (year, month, day) = (number(&text[..4])?, number(&text[4..6])?, number(&text[6..8])?);
    let (hour, minute, second) = (number(&text[9..11])?, number(&text[11..13])?, number(&text[13..])?);
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days by the civil calendar, counted in years that begin in March, so that a leap day is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = 365 * year + leap_days + (153 * month + 2) / 5 + day - 1;
    let days_until_1970 = 719_468;
    Some(days.saturating_sub(days_until_1970) * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of management.md §5.
    const EXAMPLE: &str = "0643070F08036E646E20025041360101320100140318010515046D02EA60\
                           16031B0100172088B56BBF54EE6AEA2C324CF6D5C2F25BBCF2E02EB2C464B1D035A8C7CE07E2F8";

    fn bytes(hex: &str) -> Vec<u8> {
        let hex: String = hex.split_whitespace().collect();
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    fn with_content(content: &[u8]) -> Vec<u8> {
        let name: NameBuf = "/a/32=PA/v=7/seg=0".parse().unwrap();
        DataBuilder::new(&name).content_type(5).content(content).sign_digest()
    }

    /// Prefix, version, lifetime and validity.
    type Said = (String, u64, u64, Option<(u64, u64)>);

    fn read(wire: &[u8]) -> Result<Said, AnnouncementError> {
        let data = Data::parse(wire).unwrap();
        let read = PrefixAnnouncement::read(&data)?;
        Ok((read.prefix.to_string(), read.version, read.expiration_ms, read.validity_unix_s))
    }

    #[test]
    fn the_example_is_read() {
        assert_eq!(read(&bytes(EXAMPLE)), Ok(("/ndn".to_owned(), 1, 60_000, None)));
    }

    #[test]
    fn a_written_announcement_is_read_back() {
        let prefix: NameBuf = "/a/b".parse().unwrap();
        let wire = announce_with_digest(prefix.as_name(), 3, 5000);
        assert_eq!(read(&wire), Ok(("/a/b".to_owned(), 3, 5000, None)));
        assert!(Data::parse(&wire).unwrap().verify_digest_sha256());
        assert_eq!(read(&announce_with_digest(Name::ROOT, 0, 1)).unwrap().0, "/");
    }

    #[test]
    fn a_validity_period_shortens_the_life_of_a_route() {
        let mut content = bytes("6D02EA60 FD00FD26 FD00FE0F");
        content.extend_from_slice(b"20200229T120000");
        content.extend_from_slice(&bytes("FD00FF0F"));
        content.extend_from_slice(b"20200301T000000");
        let wire = with_content(&content);
        // `date -u -d 2020-02-29T12:00:00 +%s` and so on.
        let (from, to) = (1_582_977_600, 1_583_020_800);
        assert_eq!(read(&wire).unwrap().3, Some((from, to)));
        let data = Data::parse(&wire).unwrap();
        let announcement = PrefixAnnouncement::read(&data).unwrap();
        let lifetimes = [from - 1, from, to - 30, to, to + 1].map(|s| announcement.lifetime_ms(s * 1000));
        assert_eq!(lifetimes, [0, 60_000, 31_000, 1000, 0]);
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        let data = |name: &str, content_type, content: &[u8]| {
            let name: NameBuf = name.parse().unwrap();
            DataBuilder::new(&name).content_type(content_type).content(content).sign_digest()
        };
        let good = bytes("6D02EA60");
        for name in ["/PA", "/a/PA/v=1/seg=0", "/a/32=PA/seg=0/v=1", "/a/32=PA/v=1/seg=1", "/a/32=PB/v=1/seg=0"] {
            assert_eq!(read(&data(name, 5, &good)), Err(AnnouncementError::Name), "{name}");
        }
        assert_eq!(read(&data("/a/32=PA/v=1/seg=0", 0, &good)), Err(AnnouncementError::ContentType));
        assert_eq!(read(&with_content(&[])), Err(AnnouncementError::NoExpiration));
        for content in ["6D03000001", "6D05", "6B00", "6D02EA606D02EA60"] {
            assert_eq!(read(&with_content(&bytes(content))), Err(AnnouncementError::Content), "{content}");
        }
        assert!(read(&with_content(&bytes("6D02EA606A0101"))).is_ok(), "an even type is skipped (NDNts' Cost)");
        for validity in ["20200229T12000", "2020022 T120000", "20201301T000000", "20200229 120000", "20200229T240000"] {
            let mut content = good.clone();
            let mut bounds = Vec::new();
            tlv::write_tlv(&mut bounds, NOT_BEFORE, validity.as_bytes());
            tlv::write_tlv(&mut bounds, NOT_AFTER, b"20300101T000000");
            tlv::write_tlv(&mut content, VALIDITY_PERIOD, &bounds);
            assert_eq!(read(&with_content(&content)), Err(AnnouncementError::Validity), "{validity}");
        }
        let half = bytes("6D02EA60 FD00FD00");
        assert_eq!(read(&with_content(&half)), Err(AnnouncementError::Validity));
        assert_eq!(read_timestamp(b"19600101T000000"), Some(0));
        assert_eq!(read_timestamp(b"00000101T000000"), None);
    }
}
