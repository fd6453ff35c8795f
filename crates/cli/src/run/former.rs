//! Options of `namewire run` that `--set` has replaced. If a user types one, an error message shows its new form.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Former options, and what to type instead.
const FORMER: [(&str, &str); 18] = [
    ("--busy-poll", "--set router.busy_poll=TIME"),
    ("--cs-admission", "--set cs.admission=ADMISSION"),
    ("--cs-packets", "--set cs.packets=N"),
    ("--cs-policy", "--set cs.policy=POLICY"),
    ("--cs-prefix-lookup", "--set cs.prefix_lookup=WHICH"),
    ("--dpdk-eal", "--set 'faces.dpdk.eal=[\"OPTION\", …]'"),
    ("--dpdk-port", "--set 'faces.dpdk.ports=[\"DEVICE\", …]'"),
    ("--ethernet-io", "--set faces.ethernet.io=HOW"),
    ("--fib-design", "--set fib.design=DESIGN"),
    ("--log-format", "--set log.format=FORMAT"),
    ("--max-lifetime", "--set tables.max_lifetime=TIME"),
    ("--no-udp-offload", "--set faces.udp.offload=false"),
    ("--pages", "--set tables.pages=PAGES"),
    ("--pin", "--set 'router.pin=[CPU, …]'"),
    ("--pit-capacity", "--set tables.pit_capacity=N"),
    ("--pit-role", "--set pit.role=ROLE"),
    ("--state-sync", "--set state.sync=WHEN"),
    ("--tls-trust", "--set faces.websocket.trusted_certificates=FILE"),
];

/// The error of the command line, with the new form of a former option.
pub(crate) fn explain(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return error };
    let option = typed.split('=').next();
    let found = FORMER.iter().find(|(former, _)| Some(*former) == option);
    if let (ErrorKind::UnknownArgument, Some((_, now))) = (error.kind(), found) {
        error.remove(ContextKind::SuggestedArg); // one that only looks like it
        let hint = format!("this is a setting now: {now}");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_configuration::setting_keys;

    #[test]
    fn each_former_option_names_a_setting() {
        let keys = setting_keys();
        for (option, now) in FORMER {
            let (_, setting) = now.split_once("--set ").unwrap();
            let (key, _) = setting.trim_matches('\'').split_once('=').unwrap();
            assert!(keys.iter().any(|known| known == key), "{option}: {key}");
        }
    }
}
