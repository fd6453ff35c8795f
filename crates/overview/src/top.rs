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
//! | what does `top --all` show? | [`all_view`] |

mod all_view;
mod display;
mod keys;
mod rates;
mod sample;
mod screen;
mod view;

use crate::all::{self, Named};
use all_view::AllView;
use display::Display;
use namewire_network::network::{Network, Watch};
use namewire_tools::{ExitCode, Failure, Global, ms_in};
use screen::Screen;
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
/// Of several routers, one that is slow must not hold up the others for long.
const ALL_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
#[command(after_help = "Keys: q quit, s sort by the next column, arrows scroll, ? help")]
pub struct Args {
    /// Time between two queries to the router; a number alone is in milliseconds
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = ms_in(100..=3_600_000))]
    interval: u64,
    /// Watch all named routers, one in a line; Enter shows more of one
    #[arg(long)]
    all: bool,
}

/// What is on the screen.
trait Live {
    type News;

    /// Takes what came from a router.
    fn take(&mut self, news: Self::News);

    /// Does what the user wants; false if that is to quit.
    fn fulfil(&mut self, wish: Wish) -> bool;

    fn draw(&mut self, height: usize, width: usize) -> Screen;
}

/// News of one router.
enum News {
    Sample(Box<rates::Sample>),
    Lost(String),
}

impl Live for View {
    type News = News;

    fn take(&mut self, news: News) {
        match news {
            News::Sample(sample) => self.take_sample(*sample),
            News::Lost(why) => self.lose_connection(why),
        }
    }

    fn fulfil(&mut self, wish: Wish) -> bool {
        View::fulfil(self, wish)
    }

    fn draw(&mut self, height: usize, width: usize) -> Screen {
        View::draw(self, height, width)
    }
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let instead = if args.all { "`namewire explain / --all`" } else { "`namewire status`" };
    if global.output().json {
        return Err(Failure::usage(format!("top has no --json; {instead} prints once, with --json too")));
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Failure::usage(format!("top needs a terminal; {instead} prints once")));
    }
    let pause = Duration::from_millis(args.interval);
    if args.all {
        let (sender, news) = mpsc::channel(1);
        global.refuse_router()?;
        let routers = all::named()?;
        let view = AllView::new(&routers);
        return show(view, watch_all(&routers, pause, sender), news).await;
    }
    // A router that is not there is no reason to clear the screen.
    let client = global.connect().await?;
    let view = View::new(client.transport().map(|uri| uri.to_string()).unwrap_or_default());
    drop(client);
    let (sender, news) = mpsc::channel(1);
    show(view, watch(global, pause, sender), news).await
}

async fn show<L: Live>(
    mut view: L,
    watch: impl Future<Output = ()>,
    mut news: mpsc::Receiver<L::News>,
) -> Result<(), Failure> {
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
            Some(news) = news.recv() => view.take(news),
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

/// Asks all routers until the screen is gone.
async fn watch_all(routers: &[Named], pause: Duration, news: mpsc::Sender<Network>) {
    let begin = Instant::now();
    let mut watches: Vec<Watch> = routers.iter().map(|router| Watch::new(&router.name, router.place())).collect();
    let mut ticks = interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let said = all::summaries(routers, ALL_TIMEOUT).await;
        let at = begin.elapsed();
        for (watch, said) in watches.iter_mut().zip(said) {
            watch.push(at, said);
        }
        let network = Network::of(watches.iter().map(|watch| watch.shown().clone()).collect());
        if news.send(network).await.is_err() {
            return;
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
