//! `namewire top`: a live view of a running router in the terminal.
//!
//! One part of this program queries the router periodically; another draws. A separate thread reads keys, because
//! reading blocks. While there is no connection, the screen keeps the last numbers and shows a notice.
//!
//! | question | file |
//! | --- | --- |
//! | what does the screen show? | [`view`], from [`sample`] and [`rates`] |
//! | how do its cells become text? | [`screen`] |
//! | how does the program prepare the terminal, draw on it and restore it? | [`display`] |
//! | which key was pressed? | [`keys`] |

mod display;
mod keys;
mod rates;
mod sample;
mod screen;
mod view;

use display::Display;
use namewire_tools::{ExitCode, Failure, Global, ms_in};
use std::{
    io::{self, IsTerminal},
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use view::View;

/// Answers of a router take no longer, even if it has much to do.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
#[command(after_help = "Keys: q quit, s sort by the next column, arrows scroll, ? help")]
pub struct Args {
    /// Time between two queries to the router; a number alone is in milliseconds
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = ms_in(100..=3_600_000))]
    interval: u64,
}

/// News for the screen.
enum News {
    Sample(Box<rates::Sample>),
    Lost(String),
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    if global.output().json {
        return Err(Failure::usage("top has no --json; `namewire status --json` prints the same numbers once"));
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Failure::usage("top needs a terminal; `namewire status` prints the same numbers once"));
    }
    // A router that is not there is no reason to clear the screen.
    let client = global.connect().await?;
    let view = View::new(client.transport().map(|uri| uri.to_string()).unwrap_or_default());
    drop(client);
    show(global, view, Duration::from_millis(args.interval)).await
}

async fn show(global: &Global, mut view: View, pause: Duration) -> Result<(), Failure> {
    let (sender, mut news) = mpsc::channel(1);
    let watch = watch(global, pause, sender);
    tokio::pin!(watch);
    // From here on no signal ends the process without the terminal being given back.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut new_size = signal(SignalKind::window_change())?;
    let mut display = Display::take().map_err(|error| {
        Failure::new(ExitCode::Failed, format!("cannot use this terminal: {error}; `namewire status` needs none"))
    })?;
    let mut wishes = keys::read();
    loop {
        let (height, width) = display.size();
        display.draw(&view.draw(height, width))?;
        tokio::select! {
            () = &mut watch => return Ok(()),
            Some(news) = news.recv() => match news {
                News::Sample(sample) => view.take_sample(*sample),
                News::Lost(why) => view.lose_connection(why),
            },
            wish = wishes.recv() => match wish {
                Some(wish) if view.fulfil(wish) => {}
                // To quit, or the terminal is gone.
                _ => return Ok(()),
            },
            _ = new_size.recv() => display.forget(),
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            _ = hang_up.recv() => return Ok(()),
        }
    }
}

/// Asks the router until the screen is gone.
async fn watch(global: &Global, pause: Duration, news: mpsc::Sender<News>) {
    let begin = Instant::now();
    let mut ticks = interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut client = None;
    loop {
        ticks.tick().await;
        let look = async {
            let connected = match client.take() {
                Some(client) => client,
                None => global.connect().await?,
            };
            let sample = sample::take(&connected, begin.elapsed()).await?;
            client = Some(connected);
            Ok::<_, Failure>(sample)
        };
        let late = Err(Failure::new(ExitCode::Timeout, "the router does not answer"));
        let told = match timeout(ANSWER_TIMEOUT, look).await.unwrap_or(late) {
            Ok(sample) => News::Sample(Box::new(sample)),
            Err(why) => News::Lost(why.first_line().to_owned()),
        };
        if news.send(told).await.is_err() {
            return;
        }
    }
}
