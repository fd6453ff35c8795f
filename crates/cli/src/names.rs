//! The names by which a link may call the program, and what each runs.

use namewire_ndn_tools::Program;
use namewire_nfdc::LINK_NAME;
use std::path::Path;

/// What a link with some name runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linked {
    /// NFD's nfdc.
    Nfdc,
    /// A program of ndn-tools.
    NdnTools(Program),
}

/// What runs if the program is called by this path; `None`: `namewire` itself.
pub(crate) fn linked(called: &Path) -> Option<Linked> {
    match called.file_name()?.to_str()? {
        LINK_NAME => Some(Linked::Nfdc),
        name => Program::named(name).map(Linked::NdnTools),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_link_chooses() {
        assert_eq!(linked(Path::new("/usr/local/bin/nfdc")), Some(Linked::Nfdc));
        assert_eq!(linked(Path::new("ndnpeek")), Some(Linked::NdnTools(Program::Peek)));
        assert_eq!(linked(Path::new("/usr/bin/namewire")), None);
    }
}
