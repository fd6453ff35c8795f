//! With the feature `dpdk`: compiles `src/shim.c` and links the libraries of DPDK that it calls. Otherwise: nothing.
//!
//! The drivers are not linked. DPDK loads them when it starts, from a directory that is compiled into it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/shim.c");
    #[cfg(feature = "dpdk")]
    shim::build();
}

#[cfg(feature = "dpdk")]
mod shim {
    use std::process::Command;

    /// The libraries that the shim calls. `pkg-config --libs libdpdk` names 50.
    const LIBRARIES: [&str; 5] = ["rte_eal", "rte_ethdev", "rte_mbuf", "rte_mempool", "rte_ring"];

    /// From this version on, a device is read through functions (`rte_dev_name`), no longer as a struct.
    const VERSION_MIN: &str = "22.11";

    pub(crate) fn build() {
        let found = pkg_config::Config::new()
            .atleast_version(VERSION_MIN)
            .cargo_metadata(false)
            .probe("libdpdk")
            .unwrap_or_else(|e| panic!("the feature `dpdk` needs DPDK {VERSION_MIN} (Debian: libdpdk-dev): {e}"));
        let mut shim = cc::Build::new();
        shim.file("src/shim.c").includes(&found.include_paths).std("gnu11").warnings(true).extra_warnings(true);
        // Headers of DPDK have inline functions for this instruction set; its drivers must see the same structs.
        for flag in other_flags() {
            shim.flag(flag);
        }
        shim.opt_level(3).compile("namewire_dpdk_shim");
        for path in &found.link_paths {
            println!("cargo::rustc-link-search=native={}", path.display());
        }
        for library in LIBRARIES {
            println!("cargo::rustc-link-lib=dylib={library}");
        }
    }

    /// Flags of the compiler that the pkg-config crate does not report, for example `-march=corei7`.
    fn other_flags() -> Vec<String> {
        let program = std::env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
        let output = Command::new(program).args(["--cflags-only-other", "libdpdk"]).output().expect("pkg-config runs");
        String::from_utf8_lossy(&output.stdout).split_whitespace().map(String::from).collect()
    }
}
