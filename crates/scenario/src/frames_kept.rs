//! Frames of chosen links, kept as pcapng: one file per link or medium.

use crate::world::World;
use anyhow::Context as _;
use namewire_capture::pcapng::PcapngWriter;
use namewire_engine::FaceId;
use namewire_packet::nfd::CaptureFace;
use namewire_sim::LinkId;
use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;
use std::rc::Rc;

/// The file of a link, and the first error.
struct Kept {
    writer: PcapngWriter<BufWriter<File>>,
    error: io::Result<()>,
}

/// All files.
pub(crate) struct FramesKept(Vec<(String, Rc<RefCell<Kept>>)>);

impl FramesKept {
    /// Begins the files of these links in `folder`.
    ///
    /// # Errors
    /// If a file cannot be written, or a link is unknown.
    pub(crate) fn begin(links: &[String], folder: &Path, world: &mut World) -> anyhow::Result<Self> {
        let mut all = Vec::new();
        for captured in links {
            let (link, members) = members(captured, world)?;
            let file = folder.join(format!("{}.pcapng", file_name(captured)));
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
            let opened = File::create(&file).with_context(|| file.display().to_string())?;
            let mut writer = PcapngWriter::new(BufWriter::new(opened), 0)?;
            for (end, member) in members.iter().enumerate() {
                let others: Vec<&str> = members.iter().filter(|other| *other != member).map(String::as_str).collect();
                let remote = format!("{member} to {}", others.join(", "));
                let face = CaptureFace { face: FaceId(end as u64 + 1), remote, local: member.clone() };
                writer.interface(&face)?;
            }
            let kept = Rc::new(RefCell::new(Kept { writer, error: Ok(()) }));
            let (tap, origin_ns) = (Rc::clone(&kept), world.origin_ns);
            let is_pair = members.len() == 2;
            world.net.tap(
                link,
                Box::new(move |now_ns, end, bytes| {
                    let destination = is_pair.then_some(2 - end as u64);
                    let Kept { writer, error } = &mut *tap.borrow_mut();
                    if error.is_ok() {
                        *error =
                            writer.frame_between(end as u32, now_ns - origin_ns, end as u64 + 1, destination, bytes);
                    }
                }),
            );
            all.push((file.display().to_string(), kept));
        }
        Ok(FramesKept(all))
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// If a file could not be written.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        for (file, kept) in self.0 {
            let Kept { writer, error } = &mut *kept.borrow_mut();
            std::mem::replace(error, Ok(())).and_then(|()| writer.flush()).context(file)?;
        }
        Ok(())
    }
}

/// The link of `A B` or of a medium, and the nodes on it.
fn members(captured: &str, world: &World) -> anyhow::Result<(LinkId, Vec<String>)> {
    let name_of = |place: usize| world.nodes[place].name.clone();
    if let Some(air) = world.airs.iter().find(|air| air.name == captured) {
        return Ok((air.link, air.members.iter().map(|member| name_of(member.0)).collect()));
    }
    let (a, b) = captured.split_once(' ').context("a link is `A B`")?;
    let number = world.wire_between(world.place(a)?, world.place(b)?);
    let wire = &world.wires[number.with_context(|| format!("{a} and {b} have no link"))?];
    Ok((wire.link, wire.ends.map(name_of).to_vec()))
}

/// A name that is one path component.
fn file_name(captured: &str) -> String {
    let safe = |letter: char| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '-' };
    captured.chars().map(safe).collect()
}
