//! The results of Content Store calls: what was found, whether a Data was stored, and if not, why.

/// Names a stored Data, from insertion to the end of the batch that evicts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CsId(pub u32);

/// The Data found under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsHit {
    /// The Data.
    pub id: CsId,
    /// The name is the Data's own, not the name of an Interest that it once answered.
    pub direct: bool,
}

/// What happened to a Data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsInsert {
    /// The Data is new.
    Stored(CsId),
    /// The same bytes were there; their freshness begins anew.
    Refreshed(CsId),
    /// Other Data of the same name was there; it is removed, with its indirect names.
    Replaced(CsId),
    /// It was not stored.
    Refused(CsRefusal),
}

impl CsInsert {
    /// The stored Data, unless it was refused.
    pub fn id(self) -> Option<CsId> {
        match self {
            Self::Stored(id) | Self::Refreshed(id) | Self::Replaced(id) => Some(id),
            Self::Refused(_) => None,
        }
    }
}

/// Why a Data was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CsRefusal {
    /// The store is full, and its policy does not admit the Data. Not the fault of a limit.
    #[error("the policy did not admit the Data")]
    NotAdmitted,
    /// The Data alone is larger than the capacity (which may be zero).
    #[error("the Data is larger than the Content Store")]
    LargerThanCapacity,
    /// No hole will be large enough before the batch ends; older Data was evicted to make one.
    #[error("no room in one piece before the batch ends")]
    NoRoomInBatch,
    /// [`MAX_EVICTED_PER_BATCH`](super::MAX_EVICTED_PER_BATCH) entries wait for `end_of_batch`.
    #[error("too many evictions in one batch")]
    TooManyEvictions,
    /// There is no room for another name, or no room for a long one.
    #[error("no room for another name")]
    NamesFull,
}

/// Why a Data cannot be found under another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum IndirectRefusal {
    /// The Data is not stored (any more).
    #[error("the Data is not stored")]
    NotStored,
    /// It would be larger than the capacity.
    #[error("the Data and its names are larger than the Content Store")]
    LargerThanCapacity,
    /// Other Data has that name as its own.
    #[error("the name is that of other Data")]
    NameOfOtherData,
    /// [`MAX_EVICTED_PER_BATCH`](super::MAX_EVICTED_PER_BATCH) entries wait for `end_of_batch`.
    #[error("too many evictions in one batch")]
    TooManyEvictions,
    /// There are as many indirect names as the store may have Data, or there is no room for a long one.
    /// Indirect names are rare: a consumer that asks once by prefix continues with full names.
    #[error("no room for another indirect name")]
    NamesFull,
}

/// What the store must know about arriving Data, beside its name and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsArrival {
    /// It is fresh up to and including this time; 0 = never.
    pub fresh_until_ns: u64,
    /// When it arrived.
    pub now_ns: u64,
    /// Interests that it answers: see [`Newcomer::requests`](crate::cs_policy::Newcomer::requests).
    pub requests: u32,
    /// It is unsolicited: no pending Interest asked for it.
    pub unsolicited: bool,
}

/// Asked for by one Interest at the start of time, and never fresh.
impl Default for CsArrival {
    fn default() -> Self {
        Self { fresh_until_ns: 0, now_ns: 0, requests: 1, unsolicited: false }
    }
}

/// A view of a stored Data.
#[derive(Clone, Copy, Debug)]
pub struct CsEntry<'a> {
    pub(super) data: &'a [u8],
    pub(super) name_value: Option<&'a [u8]>,
    pub(super) fresh_until_ns: u64,
    pub(super) unsolicited: bool,
}

impl<'a> CsEntry<'a> {
    /// The Data as it was inserted.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Its name; `None` once it was evicted.
    pub fn name_value(&self) -> Option<&'a [u8]> {
        self.name_value
    }

    /// Fresh up to and including this time.
    pub fn fresh_until_ns(&self) -> u64 {
        self.fresh_until_ns
    }

    /// It was unsolicited when it came.
    pub fn is_unsolicited(&self) -> bool {
        self.unsolicited
    }
}
