//! Names on the command line: NDN URIs that begin with `/` or `ndn:/`.

use namewire_packet::NameBuf;
pub(crate) use namewire_router::configuration::text::parse_name as parse;

/// The same, without the root.
pub(crate) fn parse_not_root(text: &str) -> Result<NameBuf, String> {
    match parse(text)? {
        name if name.is_empty() => Err("the root / cannot be used here".to_owned()),
        name => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_begin_with_a_slash() {
        assert_eq!(parse("/a/v=1").unwrap().len(), 2);
        assert_eq!(parse("ndn:/a").unwrap().to_string(), "/a");
        assert!(parse("a").unwrap_err().contains("/a"));
        assert!(parse("/a//b").is_err());
        assert!(parse("/").unwrap().is_empty());
        assert!(parse_not_root("/").is_err());
    }
}
