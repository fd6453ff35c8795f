//! `namewire top`: a live view of a running router in the terminal.
//!
//! A part of this program asks the router again and again; another draws; keys come from a thread of their own, because
//! reading them blocks. While there is no connection, the screen keeps the last numbers and says so.

mod rates;
mod sample;
mod view;

use crate::{ExitCode, Failure, Global};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::{
    io::{self, IsTerminal},
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use view::{View, Wish};

/// Answers of a router take no longer, even if it has much to do.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Keys that may wait for the screen.
const KEYS_MAX: usize = 64;

#[derive(Debug, clap::Args)]
#[command(after_help = "Keys: q quit, s sort by the next column, arrows scroll, ? help")]
pub(crate) struct Args {
    /// Milliseconds from one look at the router to the next
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(100..=3_600_000))]
    interval: u64,
}

/// News for the screen.
enum News {
    Sample(Box<rates::Sample>),
    Lost(String),
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    if global.json {
        return Err(Failure::usage("top has no --json; `namewire status --json` prints the same numbers once"));
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Failure::usage("top needs a terminal; `namewire status` prints the same numbers once"));
    }
    // A router that is not there is no reason to clear the screen.
    let client = global.connect().await?;
    let view = View::new(client.transport().map(|uri| uri.to_string()).unwrap_or_default());
    drop(client);
    let terminal = ratatui::try_init().map_err(|error| {
        Failure::new(ExitCode::Failed, format!("cannot use this terminal: {error}; `namewire status` needs none"))
    })?;
    let outcome = show(global, view, terminal, Duration::from_millis(args.interval)).await;
    ratatui::restore();
    outcome
}

async fn show(
    global: &Global,
    mut view: View,
    mut terminal: ratatui::DefaultTerminal,
    pause: Duration,
) -> Result<(), Failure> {
    let (sender, mut news) = mpsc::channel(1);
    let watch = watch(global, pause, sender);
    tokio::pin!(watch);
    let mut wishes = read_keys();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    loop {
        terminal.draw(|frame| view.draw(frame))?;
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

/// The wishes of the user, and [`Wish::Other`] where the terminal has changed its size. The thread ends with the
/// process.
fn read_keys() -> mpsc::Receiver<Wish> {
    let (sender, wishes) = mpsc::channel(KEYS_MAX);
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            let wish = match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => wish(key.code, key.modifiers),
                Event::Resize(..) => Wish::Other,
                _ => continue,
            };
            if sender.blocking_send(wish).is_err() {
                return;
            }
        }
    });
    wishes
}

fn wish(key: KeyCode, modifiers: KeyModifiers) -> Wish {
    match key {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Wish::Quit,
        KeyCode::Char('q') | KeyCode::Esc => Wish::Quit,
        KeyCode::Char('s') => Wish::Sort,
        KeyCode::Char('?' | 'h') => Wish::Help,
        KeyCode::Up | KeyCode::Char('k') => Wish::Scroll(-1),
        KeyCode::Down | KeyCode::Char('j') => Wish::Scroll(1),
        KeyCode::PageUp => Wish::Page(-1),
        KeyCode::PageDown | KeyCode::Char(' ') => Wish::Page(1),
        KeyCode::Home => Wish::First,
        KeyCode::End => Wish::Last,
        _ => Wish::Other,
    }
}
