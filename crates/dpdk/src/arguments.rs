//! The options of DPDK's runtime: which options this crate adds, and which it refuses.
//!
//! Source: DPDK 22.11, "EAL parameters" (Linux guide), and `rte_eal_init`, which ends the process if `--help` is among
//! the options.

use std::io;

/// Options that decide which CPUs DPDK's own threads use.
const LCORES: [&str; 5] = ["-c", "-l", "--lcores", "-s", "-S"];

/// Options with which DPDK shares no files with other processes.
const NO_FILES: [&str; 2] = ["--in-memory", "--no-shconf"];

/// Options that contradict `--in-memory`.
const FILES: [&str; 3] = ["--proc-type", "--legacy-mem", "--huge-unlink"];

/// `given` and what it lacks. `cpus` are those on which the calling thread may run.
///
/// # Errors
/// `InvalidInput` if an option asks for help or the version: DPDK would print it and exit.
pub(crate) fn complete(given: &[String], process: u32, cpus: &[usize]) -> io::Result<Vec<String>> {
    if let Some(wrong) = given.iter().find(|argument| makes_it_exit(argument) || argument.contains('\0')) {
        let text = format!("{wrong:?} is no option of DPDK's that starts it");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let mut all = vec!["namewire".to_string()];
    all.extend_from_slice(given);
    let has = |options: &[&str]| given.iter().any(|argument| options.iter().any(|option| is_option(argument, option)));
    if !has(&["--no-telemetry", "--telemetry"]) {
        all.push("--no-telemetry".into()); // It is a socket and a thread.
    }
    if !has(&["--log-level"]) {
        all.push("--log-level=warning".into());
    }
    let has_files = !has(&NO_FILES) && has(&FILES);
    if !has(&["--file-prefix"]) {
        // DPDK makes a folder of this name and leaves it behind. Without files in it, processes can share it.
        all.push(if has_files { format!("--file-prefix=namewire-{process}") } else { "--file-prefix=namewire".into() });
    }
    if !has_files && !has(&NO_FILES) {
        // No files, so a crash leaves nothing behind. Without huge pages, DPDK refuses `--in-memory`.
        all.push(if has(&["--no-huge"]) { "--no-shconf".into() } else { "--in-memory".into() });
    }
    if !has(&LCORES) && !cpus.is_empty() {
        // One thread of DPDK's that may run wherever this one may, and ends when DPDK has started. The default is a
        // thread for each CPU.
        let cpus = cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        all.push(format!("--lcores=0@({cpus})"));
    }
    Ok(all)
}

/// Whether it is `option`, alone or with its value: `--name=value`, `-xvalue`.
pub(crate) fn is_option(argument: &str, option: &str) -> bool {
    let Some(rest) = argument.strip_prefix(option) else { return false };
    rest.is_empty() || rest.starts_with('=') || !option.starts_with("--")
}

/// `getopt_long` accepts names that are cut short.
fn makes_it_exit(argument: &str) -> bool {
    match argument.strip_prefix("--") {
        Some(name) => !name.is_empty() && ["help", "version"].iter().any(|option| option.starts_with(name)),
        None => argument.starts_with("-h") || argument.starts_with("-v"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(given: &[&str]) -> Vec<String> {
        let given: Vec<String> = given.iter().map(ToString::to_string).collect();
        complete(&given, 7, &[0, 3]).expect("good")
    }

    #[test]
    fn what_is_not_given_is_added() {
        let added = [
            "namewire",
            "-m64",
            "--no-telemetry",
            "--log-level=warning",
            "--file-prefix=namewire",
            "--in-memory",
            "--lcores=0@(0,3)",
        ];
        assert_eq!(completed(&["-m64"]), added);
        assert_eq!(completed(&["--no-huge"])[5], "--no-shconf");
        assert!(completed(&["--legacy-mem"]).contains(&"--file-prefix=namewire-7".into()));
    }

    #[test]
    fn what_is_given_stays() {
        let given = ["--telemetry", "--log-level=debug", "--file-prefix", "x", "--legacy-mem", "-l0-1"];
        assert_eq!(completed(&given)[1..], given);
        let given = ["--no-telemetry", "--log-level", "debug", "--file-prefix=x", "--proc-type=primary", "--lcores=0"];
        assert_eq!(completed(&given)[1..], given);
    }

    #[test]
    fn options_that_make_dpdk_exit_are_refused() {
        for wrong in ["-h", "-hv", "-v", "--help", "--hel", "--version", "--ver", "-m\0"] {
            let error = complete(&[wrong.to_string()], 7, &[]).expect_err("refused");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{wrong}");
        }
        complete(&["--vdev=net_null0".into(), "--huge-dir=/x".into()], 7, &[]).expect("others");
    }
}
