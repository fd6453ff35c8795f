//! The reasons why a router may fail to start.

use namewire_configuration::Settings;
use namewire_designs::fib::catalogue::FibDesignError;
use namewire_engine::dispatch::MAX_WORKERS;
use namewire_packet::nfd::FaceUri;
use namewire_tables::{
    PageSize,
    head_room::{self, RESERVE_BYTES},
};
use namewire_websocket::ListenError;
use namewire_worker::WorkersError;
use std::{io, path::PathBuf};

/// The file in which an administrator sets the number of huge pages of a size.
fn reserve_file(pages: PageSize) -> String {
    format!("/sys/kernel/mm/hugepages/hugepages-{}kB/nr_hugepages", pages.bytes() >> 10)
}

/// Why a router did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The number of workers, or of workers and I/O threads together, is outside 1 to 64.
    #[error("{0} threads: choose 1 to {MAX_WORKERS}")]
    Workers(usize),
    /// The number of processors is not the number of workers and I/O threads.
    #[error("{given} processors for {workers} threads: name one for each")]
    Processors {
        /// Processors named.
        given: usize,
        /// Workers and I/O threads asked for.
        workers: usize,
    },
    /// The design of the FIB has no such option.
    #[error(transparent)]
    FibDesign(FibDesignError),
    /// A worker may not run on the processor given to it.
    #[error("cannot run a worker on processor {processor}: {source}; this process may use {usable}")]
    Pin {
        /// Its number.
        processor: usize,
        /// The processors that this process may use, as `0-3,8`.
        usable: String,
        /// What the system said.
        source: io::Error,
    },
    /// A listener could not be opened.
    #[error("cannot listen on {what}: {source}")]
    Listen {
        /// The address of the listener.
        what: FaceUri,
        /// What the system said.
        source: io::Error,
    },
    /// The address of metrics and page cannot be had.
    #[error("{0}")]
    Observe(io::Error),
    /// Threads, descriptors or randomness are unavailable.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
    /// The free memory is less than the need and the reserve of [`namewire_tables::head_room`].
    #[error(
        "too little memory: the start needs {} MiB of address space more, {} of them as a reserve (ulimit -v)",
        bytes.saturating_add(RESERVE_BYTES) >> 20, RESERVE_BYTES >> 20
    )]
    Memory {
        /// The bytes needed beside the reserve.
        bytes: usize,
    },
    /// The system starts no more threads.
    #[error("cannot start a thread: {0}; memory or the number of threads is limited (ulimit -v, -u)")]
    Thread(#[source] io::Error),
    /// The kernel does not map the memory that the tables may need.
    #[error("cannot map the tables; choose smaller capacities: {0}")]
    Tables(#[source] io::Error),
    /// Too few huge pages of this size are reserved.
    #[error(
        "cannot map the tables on pages of {}: {source}; reserve more of them (write their number to {}), or choose \
         smaller capacities or other pages",
        .pages.name(), reserve_file(*.pages)
    )]
    HugePages {
        /// The page size asked for.
        pages: PageSize,
        /// What the system said.
        source: io::Error,
    },
    /// TagNet's tables find no memory.
    #[error("cannot make the tables of TagNet; choose a smaller tagnet.descriptors: {0}")]
    TagTables(#[from] namewire_tagnet::matching::burst_trie::BuildError),
    /// The file with the keys of TagNet's trees is no such file.
    #[error("cannot read the keys of TagNet's trees from {}: {why}", .file.display())]
    TagKeys {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The old program did not hand over.
    #[error("cannot take over: {0}")]
    TakeOver(#[from] namewire_handover::LineError),
    /// A strategy of the configuration is unknown or refused.
    #[error("cannot start: {0}")]
    Strategy(#[from] namewire_management::StrategyError),
}

impl From<ListenError> for StartError {
    fn from(ListenError { what, source }: ListenError) -> Self {
        StartError::Listen { what, source }
    }
}

impl StartError {
    /// Fails if the system cannot give this many bytes and keep the reserve.
    pub(crate) fn require_memory(bytes: usize) -> Result<(), StartError> {
        head_room::is_there(bytes).then_some(()).ok_or(StartError::Memory { bytes })
    }

    /// Refuses numbers that contradict each other.
    pub(crate) fn check(settings: &Settings) -> Result<(), StartError> {
        let (workers, pin) = (settings.router.threads(), &settings.router.pin);
        if settings.router.workers == 0 || workers > MAX_WORKERS {
            return Err(StartError::Workers(workers));
        }
        if !pin.is_empty() && pin.len() != workers {
            return Err(StartError::Processors { given: pin.len(), workers });
        }
        Ok(())
    }

    /// The kernel did not map a table on these pages.
    fn unmapped(pages: PageSize, source: io::Error) -> Self {
        match pages {
            PageSize::Huge2MiB | PageSize::Huge1GiB => StartError::HugePages { pages, source },
            PageSize::Base | PageSize::Transparent => StartError::Tables(source),
        }
    }

    /// The workers did not start, with tables on these pages.
    pub(crate) fn of_workers(pages: PageSize, error: WorkersError) -> Self {
        match error {
            WorkersError::Unmapped(source) => StartError::unmapped(pages, source),
            WorkersError::Memory(bytes) => StartError::Memory { bytes },
            WorkersError::Pin { processor, usable, source } => StartError::Pin { processor, usable, source },
            WorkersError::Thread(source) => StartError::Thread(source),
            WorkersError::System(source) => StartError::System(source),
        }
    }

    /// The FIB design could not be made on these pages.
    pub(crate) fn no_fib(pages: PageSize, error: FibDesignError) -> Self {
        match error {
            FibDesignError::NoMemory(source) => StartError::unmapped(pages, source),
            error => StartError::FibDesign(error),
        }
    }
}
