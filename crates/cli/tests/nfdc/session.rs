//! Sessions: files of commands and their results.

use super::normalise::Normaliser;
use std::{
    fmt,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

/// One command and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) command: String,
    /// Lines of its batch.
    batch: Vec<String>,
    pub(crate) out: Vec<String>,
    pub(crate) err: Vec<String>,
    pub(crate) code: String,
}

/// A file of steps.
#[derive(Debug)]
pub(crate) struct Session {
    comments: Vec<String>,
    pub(crate) steps: Vec<Step>,
}

impl Session {
    pub(crate) fn read(path: &Path) -> Session {
        let mut session = Session { comments: Vec::new(), steps: Vec::new() };
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let (mark, text) = line.split_once(' ').unwrap_or((line, ""));
            let text = text.to_owned();
            if mark == "#" {
                session.comments.push(text);
                continue;
            }
            if mark == "$" {
                session.steps.push(Step { command: text, ..Step::default() });
                continue;
            }
            let step = session.steps.last_mut().expect("a command comes first");
            match mark {
                "|" => step.batch.push(text),
                ">" => step.out.push(text),
                "2>" => step.err.push(text),
                "=" => step.code = text,
                _ => panic!("{}: {line}", path.display()),
            }
        }
        session
    }
}

impl Step {
    /// What is printed of a command line that makes no sense: NFD's nfdc goes on to call a
    /// function that is not there, says so and exits with 1, where its manual promises 2.
    pub(crate) fn with_documented_differences(&self) -> Step {
        let mut step = self.clone();
        if step.err.last().is_some_and(|line| line == "bad_function_call") {
            step.err.pop();
            step.code = "2".to_owned();
        }
        step
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |mark: &str, text: &str| writeln!(f, "{}", format!("{mark} {text}").trim_end());
        line("$", &self.command)?;
        self.batch.iter().try_for_each(|text| line("|", text))?;
        self.out.iter().try_for_each(|text| line(">", text))?;
        self.err.iter().try_for_each(|text| line("2>", text))?;
        line("=", &self.code)
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.comments.iter().try_for_each(|comment| writeln!(f, "# {comment}"))?;
        self.steps.iter().try_for_each(|step| step.fmt(f))
    }
}

/// An nfdc.
pub(crate) struct Tool {
    pub(crate) program: PathBuf,
    pub(crate) transport: String,
    /// For batch files.
    pub(crate) directory: PathBuf,
    /// Before each command.
    pub(crate) pause: Duration,
}

impl Tool {
    /// Runs the command of a step again.
    pub(crate) fn run(&self, step: &Step, normaliser: &mut Normaliser) -> Step {
        std::thread::sleep(self.pause);
        let batch_path = self.directory.join("batch");
        let batch: String = step.batch.iter().map(|line| format!("{}\n", normaliser.concrete(line))).collect();
        std::fs::write(&batch_path, &batch).unwrap();
        let batch_path = batch_path.display().to_string();
        let words = step.command.split_whitespace();
        let mut process = Command::new(&self.program)
            .args(words.map(|word| normaliser.concrete(word).replace("<BATCH>", &batch_path)))
            .env("NDN_CLIENT_TRANSPORT", &self.transport)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A tool that reads none of it may be gone already.
        let _ = process.stdin.take().unwrap().write_all(batch.as_bytes());
        let output = process.wait_with_output().unwrap();
        let mut lines = |bytes: &[u8]| {
            let text = String::from_utf8(bytes.to_vec()).unwrap().replace(&batch_path, "<BATCH>");
            normaliser.lines(&step.command, &text)
        };
        Step {
            command: step.command.clone(),
            batch: step.batch.clone(),
            out: lines(&output.stdout),
            err: lines(&output.stderr),
            code: output.status.code().map_or_else(|| "signal".to_owned(), |code| code.to_string()),
        }
    }
}
