//! Names on the command line: NDN URIs that begin with `/` or `ndn:/`.

pub(crate) use namewire_configuration::text::parse_name as parse;
use namewire_packet::NameBuf;

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
    fn the_root_is_a_name_but_not_everywhere() {
        assert!(parse("/").unwrap().is_empty());
        assert!(parse_not_root("/").is_err());
        assert_eq!(parse_not_root("/a/v=1").unwrap().len(), 2);
    }
}
