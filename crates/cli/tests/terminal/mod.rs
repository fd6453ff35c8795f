//! A pseudo-terminal with a program in it. The output of the program goes through a terminal emulator, so a test reads
//! the screen that a user sees.
#![allow(dead_code, reason = "each program of tests uses a part of this")]

use crate::router_process::PATIENCE;
use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};
use std::{
    fs::File,
    io::{Read, Write},
    num::NonZeroU16,
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

const WIDTH: u16 = 100;
const HEIGHT: u16 = 30;

fn size(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

/// A program in a terminal of its own.
pub(crate) struct Terminal {
    master: File,
    /// Kept open: otherwise the settings of the terminal are gone with the program.
    slave: File,
    screen: Arc<Mutex<vt100::Parser>>,
    written: Arc<Mutex<Vec<u8>>>,
    pub(crate) program: Child,
}

impl Terminal {
    pub(crate) fn start(command: &mut Command) -> Terminal {
        Terminal::of_width(WIDTH, command)
    }

    pub(crate) fn of_width(width: u16, command: &mut Command) -> Terminal {
        let master: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = File::options().read(true).write(true).open(path).unwrap();
        tcsetwinsize(&slave, Winsize { ws_row: HEIGHT, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let side = || slave.try_clone().unwrap();
        let program = command.stdin(side()).stdout(side()).stderr(side()).env("TERM", "xterm").spawn().unwrap();
        let master = File::from(master);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(size(HEIGHT), size(width), 0)));
        let written = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, writer, copy) = (master.try_clone().unwrap(), Arc::clone(&screen), Arc::clone(&written));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                writer.lock().unwrap().process(&bytes[..count]);
                copy.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Terminal { master, slave, screen, written, program }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let parser = self.screen.lock().unwrap();
        let (_, width) = parser.screen().size();
        parser.screen().rows(0, width.get()).map(|line| line.trim_end().to_owned()).collect()
    }

    /// All that the program has written, also what has left the screen.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// True if some character on the screen has a colour of its own.
    pub(crate) fn has_colours(&self) -> bool {
        let parser = self.screen.lock().unwrap();
        let (height, width) = parser.screen().size();
        let (height, width) = (height.get(), width.get());
        let mut places = (0..height).flat_map(|row| (0..width).map(move |column| (row, column)));
        places.any(|(row, column)| {
            parser.screen().cell(row, column).is_some_and(|cell| cell.fgcolor() != vt100::Color::Default)
        })
    }

    pub(crate) fn has_alternate_screen(&self) -> bool {
        self.screen.lock().unwrap().screen().alternate_screen()
    }

    pub(crate) fn wait_for(&self, what: &str, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let lines = self.lines();
            if is_so(&lines) {
                return lines;
            }
            assert!(Instant::now() < end, "the screen does not show {what}:\n{}", lines.join("\n"));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Gives the terminal another size and tells the program, as the kernel does where the terminal controls it.
    pub(crate) fn resize(&self, height: u16, width: u16) {
        self.screen.lock().unwrap().screen_mut().set_size(size(height), size(width));
        tcsetwinsize(&self.slave, Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        kill_process(Pid::from_child(&self.program), Signal::WINCH).unwrap();
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn wait_for_end(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.program.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "the program goes on; it has written\n{}", self.written());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// True if the terminal gathers and shows what is typed, as it did before.
    pub(crate) fn is_restored(&self) -> bool {
        let modes = tcgetattr(&self.slave).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
