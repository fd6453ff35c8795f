//! The same API in a build without DPDK. Neither an [`Eal`] nor a [`Port`] can exist, so callers need no `cfg`.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use crate::options::{PortCounters, PortOptions};

/// The DPDK runtime of this process. In this build, there is none.
#[derive(Debug)]
pub struct Eal(Infallible);

impl Eal {
    /// Starts DPDK. In this build, it cannot.
    ///
    /// # Errors
    /// `Unsupported`, always.
    pub fn init(_: &[String]) -> io::Result<Arc<Eal>> {
        let text = "this build has no DPDK (build with `--features dpdk`, Debian's libdpdk-dev)";
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }

    /// What DPDK logged since the last call.
    #[must_use]
    pub fn take_log(&self) -> String {
        match self.0 {}
    }
}

/// One port of a device. In this build, there is none.
#[derive(Debug)]
pub struct Port(Infallible);

#[allow(clippy::missing_errors_doc, reason = "no method can be called")]
#[allow(missing_docs, reason = "see the methods of the build with DPDK")]
impl Port {
    pub fn open(eal: &Arc<Eal>, _: &str, _: &PortOptions) -> io::Result<Port> {
        match eal.0 {}
    }

    #[must_use]
    pub fn name(&self) -> &str {
        match self.0 {}
    }

    #[must_use]
    pub fn driver(&self) -> &str {
        match self.0 {}
    }

    #[must_use]
    pub fn address(&self) -> [u8; 6] {
        match self.0 {}
    }

    #[must_use]
    pub fn mtu(&self) -> usize {
        match self.0 {}
    }

    #[must_use]
    pub fn frame_bytes_max(&self) -> usize {
        match self.0 {}
    }

    #[must_use]
    pub fn is_up(&self) -> bool {
        match self.0 {}
    }

    pub fn receive(&mut self, _: usize, _: impl FnMut(&[u8])) -> usize {
        match self.0 {}
    }

    #[must_use]
    pub fn send(&mut self, _: &[&[u8]]) -> bool {
        match self.0 {}
    }

    pub fn flush(&mut self) -> usize {
        match self.0 {}
    }

    #[must_use]
    pub fn waiting(&self) -> usize {
        match self.0 {}
    }

    pub fn hear_group(&mut self, _: [u8; 6]) -> io::Result<()> {
        match self.0 {}
    }

    #[must_use]
    pub fn counters(&self) -> PortCounters {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_dpdk_says_so() {
        let error = Eal::init(&[]).expect_err("no DPDK");
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        assert_eq!(error.to_string(), "this build has no DPDK (build with `--features dpdk`, Debian's libdpdk-dev)");
    }
}
