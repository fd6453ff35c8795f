//! The programs that need DPDK: a router built with it, and the bare forwarder with which it is compared.
//!
//! They are in `dpdk/release` of the target directory. If they are not there, and the scale is more than a smoke test,
//! cargo builds them. That needs Debian's libdpdk-dev.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// Environment variable with the folder of both programs.
const FOLDER_VARIABLE: &str = "NAMEWIRE_DPDK";

/// See the module.
pub(super) struct DpdkPrograms {
    pub(super) router: PathBuf,
    pub(super) forwarder: PathBuf,
}

impl DpdkPrograms {
    /// Finds the programs, or builds them if `may_build`. `lab` is the program `namewire-lab`.
    ///
    /// # Errors
    /// They are not there and cannot be built; the message says why.
    pub(super) fn find(lab: &Path, may_build: bool) -> anyhow::Result<Self> {
        if let Some(folder) = std::env::var_os(FOLDER_VARIABLE) {
            return Self::in_folder(Path::new(&folder));
        }
        let target = lab.parent().and_then(Path::parent).context("this program lies in no target directory")?;
        let target = target.join("dpdk");
        let found = Self::in_folder(&target.join("release"));
        if found.is_ok() || !may_build {
            return found;
        }
        build(&target)?;
        Self::in_folder(&target.join("release"))
    }

    fn in_folder(folder: &Path) -> anyhow::Result<Self> {
        let (router, forwarder) = (folder.join("namewire"), folder.join("examples/forward"));
        for program in [&router, &forwarder] {
            ensure!(program.is_file(), "{} is not there (`make dpdk` builds it)", program.display());
        }
        Ok(DpdkPrograms { router, forwarder })
    }
}

/// Builds both programs, optimized.
fn build(target: &Path) -> anyhow::Result<()> {
    for what in [&["--package", "namewire-cli"][..], &["--package", "namewire-dpdk", "--example", "forward"]] {
        let mut command = Command::new("cargo");
        command.args(["build", "--release", "--locked", "--features", "dpdk", "--target-dir"]).arg(target).args(what);
        let built = command.stdin(Stdio::null()).stdout(Stdio::null()).status().context("cargo does not run")?;
        ensure!(built.success(), "the build with DPDK failed; it needs Debian's libdpdk-dev");
    }
    Ok(())
}
