//! Names of entries of a folder: which bytes may name a file below a folder that is served or written?
//!
//! An [`EntryName`] is one component of a path. Holding one proves that it stays in its folder: it is not empty, not
//! `.` or `..`, and has no `/` and no zero byte. It need not be UTF-8. Limit: [`ENTRY_NAME_BYTES_MAX`], as file systems
//! have it.

use std::{
    ffi::OsStr,
    fmt::{self, Write},
    os::unix::ffi::OsStrExt,
    sync::Arc,
};

/// Most bytes of one component, the limit of the usual file systems.
pub const ENTRY_NAME_BYTES_MAX: usize = 255;

/// Why some bytes name no entry of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryNameError {
    /// There are no bytes.
    #[error("the name is empty")]
    Empty,
    /// `.` and `..` name the folder itself and the one around it.
    #[error("the name leads to another folder")]
    Dots,
    /// A slash would lead into another folder.
    #[error("the name has a slash")]
    Slash,
    /// No file system has it.
    #[error("the name has a zero byte")]
    Zero,
    /// Longer than [`ENTRY_NAME_BYTES_MAX`].
    #[error("the name has {0} bytes, more than 255")]
    TooLong(usize),
}

/// One component of a path below a folder.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryName(Box<[u8]>);

impl EntryName {
    /// Checks and copies `bytes`.
    ///
    /// # Errors
    /// See [`EntryNameError`].
    pub fn new(bytes: &[u8]) -> Result<Self, EntryNameError> {
        match bytes {
            [] => Err(EntryNameError::Empty),
            b"." | b".." => Err(EntryNameError::Dots),
            _ if bytes.contains(&b'/') => Err(EntryNameError::Slash),
            _ if bytes.contains(&0) => Err(EntryNameError::Zero),
            _ if bytes.len() > ENTRY_NAME_BYTES_MAX => Err(EntryNameError::TooLong(bytes.len())),
            _ => Ok(EntryName(bytes.into())),
        }
    }

    /// The bytes of the name.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The same for calls of the operating system.
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }
}

impl fmt::Display for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.0))
    }
}

impl fmt::Debug for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryName({self})")
    }
}

/// Components below a folder, from the outermost to the innermost. No component is the folder itself, which is printed
/// as `.`.
///
/// Paths share the folders around them: a path takes the bytes of its last component and some 70 more. A copy is one
/// reference count.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct EntryPath(Option<Arc<Link>>);

#[derive(PartialEq, Eq, Hash)]
struct Link {
    folder: EntryPath,
    name: EntryName,
    depth: usize,
}

impl EntryPath {
    /// The path with one more component.
    pub fn join(&self, name: EntryName) -> EntryPath {
        EntryPath(Some(Arc::new(Link { folder: self.clone(), name, depth: self.depth() + 1 })))
    }

    /// How many components there are.
    pub fn depth(&self) -> usize {
        self.0.as_ref().map_or(0, |link| link.depth)
    }

    /// The folder around the last component, and this.
    pub fn split_last(&self) -> Option<(&EntryPath, &EntryName)> {
        self.0.as_ref().map(|link| (&link.folder, &link.name))
    }

    /// The components. Cost: one allocation.
    pub fn components(&self) -> Vec<&EntryName> {
        let mut components = Vec::with_capacity(self.depth());
        let mut path = self;
        while let Some((folder, name)) = path.split_last() {
            components.push(name);
            path = folder;
        }
        components.reverse();
        components
    }
}

/// One after the other: a path of thousands of components would need much stack.
impl Drop for EntryPath {
    fn drop(&mut self) {
        let mut last = self.0.take();
        while let Some(mut link) = last.and_then(Arc::into_inner) {
            last = link.folder.0.take();
        }
    }
}

impl FromIterator<EntryName> for EntryPath {
    fn from_iter<I: IntoIterator<Item = EntryName>>(names: I) -> Self {
        names.into_iter().fold(EntryPath::default(), |path, name| path.join(name))
    }
}

impl fmt::Display for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let components = self.components();
        let Some((last, folders)) = components.split_last() else { return f.write_str(".") };
        folders.iter().try_for_each(|folder| write!(f, "{folder}/"))?;
        last.fmt(f)
    }
}

impl fmt::Debug for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryPath({self})")
    }
}

/// A name as a terminal may get it: bytes that are no UTF-8 become `\xNN`, and characters that a terminal obeys or
/// hides become `\u{NN}`.
pub fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\'' | '"' => text.push(character),
                _ => text.extend(character.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_stay_in_their_folder_are_taken() {
        let refused = |bytes: &[u8]| EntryName::new(bytes).unwrap_err();
        assert_eq!(refused(b""), EntryNameError::Empty);
        assert_eq!(refused(b"."), EntryNameError::Dots);
        assert_eq!(refused(b".."), EntryNameError::Dots);
        assert_eq!(refused(b"../x"), EntryNameError::Slash);
        assert_eq!(refused(b"/abs"), EntryNameError::Slash);
        assert_eq!(refused(b"a/"), EntryNameError::Slash);
        assert_eq!(refused(b"a\0b"), EntryNameError::Zero);
        assert_eq!(refused(&[b'a'; 256]), EntryNameError::TooLong(256));
        for taken in [&b"..."[..], b"..a", b" ", b"-rf", b"\xff\xfe", "ü".as_bytes(), &[b'a'; 255]] {
            assert_eq!(EntryName::new(taken).unwrap().as_bytes(), taken);
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(printable(b"it's \x1b[2J\xff \"ok\""), "it's \\u{1b}[2J\\xff \"ok\"");
        assert_eq!(printable("Grüße \u{202e}txt".as_bytes()), "Grüße \\u{202e}txt");
        let path = EntryPath::default();
        assert_eq!(path.to_string(), ".");
        let path = path.join(EntryName::new(b"a").unwrap()).join(EntryName::new(b"b\n").unwrap());
        assert_eq!(path.to_string(), "a/b\\n");
    }

    /// The story: each entry of a listing had a copy of the names of all folders around it, so a million entries in 64
    /// folders with long names took 16 GB.
    #[test]
    fn paths_share_the_folders_around_them() {
        let name = |text: &str| EntryName::new(text.as_bytes()).unwrap();
        let deep: EntryPath = (0..100_000).map(|_| name(&"d".repeat(20))).collect();
        let entries: Vec<EntryPath> = (0..1000).map(|number| deep.join(name(&number.to_string()))).collect();
        assert_eq!(Arc::strong_count(deep.0.as_ref().unwrap()), 1001);
        let components = entries[7].components();
        assert_eq!((components.len(), entries[7].depth(), components[100_000]), (100_001, 100_001, &name("7")));
        assert_eq!(entries[7].split_last(), Some((&deep, &name("7"))));
        // Nothing here may need stack for each component.
        drop(deep);
        drop(entries);
    }
}
