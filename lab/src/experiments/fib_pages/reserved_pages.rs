//! Explicit huge pages for a run: the kernel reserves them, if the user may ask for that, and gets them back.
//!
//! Cached files prevent large pages. So if the kernel reserves too few pages, the run asks it to drop cached files
//! (programs read them again when needed), to compact its memory, and to reserve once more.

use std::fs;
use std::path::PathBuf;

use namewire_tables::PageSize;

/// Huge pages that the kernel reserves for the run; given back when dropped.
pub(super) struct ReservedPages {
    file: PathBuf,
    before: String,
}

impl ReservedPages {
    /// Pages for arrays of these sizes. `None` if they need no reservation.
    ///
    /// # Errors
    /// Why there are too few pages: the system refuses them, or lacks that much memory in one piece.
    pub(super) fn reserve(pages: PageSize, array_bytes: &[u64]) -> Result<Option<Self>, String> {
        if matches!(pages, PageSize::Base | PageSize::Transparent) {
            return Ok(None);
        }
        let page_bytes = pages.bytes() as u64;
        let file = format!("/sys/kernel/mm/hugepages/hugepages-{}kB/nr_hugepages", page_bytes >> 10);
        let file = PathBuf::from(file);
        let read = || fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()));
        let count = |text: &str| text.trim().parse::<u64>().map_err(|error| format!("{}: {error}", file.display()));
        let before = read()?.trim().to_owned();
        let wanted = count(&before)? + Self::bytes(pages, array_bytes) / page_bytes;
        let reserved = Self { file: file.clone(), before };
        let ask = || {
            fs::write(&file, wanted.to_string()).map_err(|error| format!("{}: {error}", file.display()))?;
            count(&read()?)
        };
        let mut granted = ask()?;
        if granted < wanted {
            // If the system refuses, so it does with the pages.
            let _ = fs::write("/proc/sys/vm/drop_caches", "3");
            let _ = fs::write("/proc/sys/vm/compact_memory", "1");
            granted = ask()?;
        }
        match granted >= wanted {
            true => Ok(Some(reserved)),
            false => Err(format!("the kernel reserves {granted} pages of {} and not {wanted}", pages.name())),
        }
    }

    /// Bytes of the explicit huge pages that arrays of these sizes lie on: smaller ones are on transparent pages.
    pub(super) fn bytes(pages: PageSize, array_bytes: &[u64]) -> u64 {
        if matches!(pages, PageSize::Base | PageSize::Transparent) {
            return 0;
        }
        let page_bytes = pages.bytes() as u64;
        let large = array_bytes.iter().filter(|&&bytes| bytes >= page_bytes / 2);
        large.map(|bytes| bytes.next_multiple_of(page_bytes)).sum()
    }
}

impl Drop for ReservedPages {
    fn drop(&mut self) {
        // If the kernel keeps the pages, nothing more can be done.
        let _ = fs::write(&self.file, &self.before);
    }
}
