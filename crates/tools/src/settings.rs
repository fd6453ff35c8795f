//! `namewire config show --running`: the settings in force in a running router.

use crate::{ExitCode, Failure, Global, output::table};
use namewire_packet::nfd::{SettingInForce, setting_in_force::setting_source};

/// Prints every setting that has a value in the running router, the value, and where it came from.
///
/// # Errors
/// If there is no router, or another forwarder than ours.
pub async fn show_running(global: &Global) -> Result<(), Failure> {
    global.told(running(global).await)
}

async fn running(global: &Global) -> Result<(), Failure> {
    let client = global.connect().await?;
    let state = client.state(&[]).await?;
    if !state.is_of_namewire() {
        let version = state.general.unwrap_or_default().nfd_version;
        let message = format!("the forwarder is of version {version}; only Namewire tells its settings");
        return Err(Failure::new(ExitCode::Failed, message));
    }
    let settings: Vec<SettingInForce> = client.list().await?;
    global.output().print(&settings, || {
        let mut rows = vec![["KEY", "VALUE", "FROM"].map(str::to_owned).to_vec()];
        rows.extend(settings.iter().map(|setting| vec![setting.key.clone(), setting.value.clone(), from(setting)]));
        table(&rows, "no settings")
    })?;
    Ok(())
}

/// The source and its place: `default`, `namewire.toml:7`, `--workers`, `command`.
fn from(setting: &SettingInForce) -> String {
    match &setting.place {
        Some(place) if [setting_source::FILE, setting_source::OPTION].contains(&&setting.source[..]) => place.clone(),
        _ => setting.source.clone(),
    }
}
