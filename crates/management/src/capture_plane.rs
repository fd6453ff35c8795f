//! What management asks of captures: to begin and end them, and to send their records.
//!
//! Management decides who may command, and answers. The router copies the frames.

use crate::environment::Times;
use namewire_packet::{FaceId, Name, NameBuf, nfd::FaceUri};

/// What a capture shall take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedCapture {
    /// Of what.
    pub subject: Subject,
    /// One frame of this number is taken, or one name; at least 1.
    pub one_in: u64,
    /// Bytes of each frame; `None` means all.
    pub snap_bytes: Option<u64>,
}

/// What a capture is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Frames of this face, and of those of later `capture/add` commands.
    Face(FaceId),
    /// Frames of the faces of this local end (`dev://`), also later ones, by the addresses that it has when the capture
    /// begins.
    FacesOf(FaceUri),
    /// Frames of all faces, also later ones.
    AllFaces,
    /// What the forwarder decides about packets under this prefix.
    Decisions(NameBuf),
}

/// Why a capture command is refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureRefusal {
    /// There is no such face.
    #[error("Face {0} not found")]
    NoFace(FaceId),
    /// There is no such network interface.
    #[error("There is no network interface {0}")]
    NoInterface(String),
    /// A client that captured itself would capture what it captured, and so would two that captured each other.
    #[error("Face {0} is of a client that captures, and cannot be captured")]
    OwnFace(FaceId),
    /// The client has no such capture.
    #[error("There is no such capture of this client")]
    NoCapture,
    /// Faces are named before the first piece is fetched.
    #[error("The capture has begun, and takes no more faces")]
    Begun,
    /// Its client has ended it.
    #[error("The capture has been stopped, and takes no more faces")]
    Stopped,
    /// Too many captures run.
    #[error("{0} captures run already, which is the limit")]
    TooMany(usize),
    /// Too many faces are named one by one.
    #[error("A capture takes at most {0} faces that are named one by one; capture all")]
    TooManyFaces(usize),
    /// A router without sockets has no frames.
    #[error("This forwarder captures nothing")]
    Unavailable,
}

impl CaptureRefusal {
    /// The status code of the answer.
    pub const fn code(&self) -> u64 {
        match self {
            CaptureRefusal::NoFace(_) | CaptureRefusal::NoInterface(_) => 404,
            CaptureRefusal::NoCapture => 410,
            CaptureRefusal::OwnFace(_) | CaptureRefusal::Begun | CaptureRefusal::Stopped => 409,
            CaptureRefusal::TooMany(_) | CaptureRefusal::Unavailable => 503,
            CaptureRefusal::TooManyFaces(_) => 507,
        }
    }
}

/// The part of the router that captures frames and decisions. A capture belongs to the face whose client began it, and
/// ends with it.
pub trait CapturePlane {
    /// Begins a capture and returns its name.
    ///
    /// # Errors
    /// If there is no such face or interface, or a limit is met.
    fn start(&mut self, now: Times, client: FaceId, wanted: WantedCapture) -> Result<NameBuf, CaptureRefusal>;

    /// Adds a face to a capture of faces that are named.
    ///
    /// # Errors
    /// If there is no such face or capture, or a limit is met.
    fn add(&mut self, client: FaceId, capture: Name<'_>, face: FaceId) -> Result<(), CaptureRefusal>;

    /// Ends a capture. What it caught can still be fetched.
    ///
    /// # Errors
    /// If there is no such capture.
    fn stop(&mut self, client: FaceId, capture: Name<'_>) -> Result<(), CaptureRefusal>;

    /// Takes a request for a piece of a capture. The router sends the answer to that face alone. False if none comes:
    /// the client has no such capture, or the piece is no longer kept, too far ahead or after the last one.
    fn fetch(&mut self, now: Times, client: FaceId, capture: Name<'_>, sequence: u64) -> bool;
}
