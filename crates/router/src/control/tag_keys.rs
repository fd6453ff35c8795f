//! The file with the keys of TagNet's trees. Each line has the number of a tree and 64 hexadecimal digits.
//!
//! ```text
//! # routers of building 7
//! 1 8f4b…
//! ```
//!
//! Only the owner of the file may be allowed to read it. Empty lines and comments are ignored. A line for a tree
//! without this router is an error, because the file probably belongs to another router.

use crate::StartError;
use namewire_configuration::{input_file, settings::TagnetSection};
use namewire_tagnet::routing::{KEY_BYTES, TreeKey};
use std::{collections::BTreeMap, os::unix::fs::PermissionsExt as _, path::Path};

/// Most bytes of the file.
const FILE_BYTES_MAX: u64 = 1 << 16;
/// Permissions that others must not have.
const OTHERS: u32 = 0o077;

/// The keys that the section's file has; none without a file.
///
/// # Errors
/// If the file cannot be read, or is not as this module says.
pub(super) fn read(section: &TagnetSection) -> Result<BTreeMap<u16, TreeKey>, StartError> {
    let Some(file) = &section.key_file else { return Ok(BTreeMap::new()) };
    read_file(file, &section.trees).map_err(|why| StartError::TagKeys { file: file.clone(), why })
}

fn read_file(file: &Path, trees: &[u16]) -> Result<BTreeMap<u16, TreeKey>, String> {
    let bytes = input_file::read(file, FILE_BYTES_MAX).map_err(|error| error.to_string())?;
    let mode = std::fs::metadata(file).map_err(|error| error.to_string())?.permissions().mode();
    if mode & OTHERS != 0 {
        return Err("others may read it; remove their permissions (chmod 600)".to_owned());
    }
    parse(&String::from_utf8_lossy(&bytes), trees)
}

fn parse(text: &str, trees: &[u16]) -> Result<BTreeMap<u16, TreeKey>, String> {
    let mut keys = BTreeMap::new();
    let lines = (1..).zip(text.lines().map(str::trim));
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let (tree, key) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let tree: u16 = tree.parse().map_err(|_| format!("line {number}: no number of a tree at the beginning"))?;
        if !trees.contains(&tree) {
            return Err(format!("line {number}: tree {tree} is not in tagnet.trees"));
        }
        let key = key_of(key.trim()).ok_or_else(|| format!("line {number}: a key has 64 hexadecimal digits"))?;
        if keys.insert(tree, key).is_some() {
            return Err(format!("line {number}: a second key for tree {tree}"));
        }
    }
    Ok(keys)
}

fn key_of(digits: &str) -> Option<TreeKey> {
    let mut key = [0; KEY_BYTES];
    if digits.len() != 2 * KEY_BYTES || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (place, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(TreeKey::new(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_key_for_each_tree_that_it_names() {
        let (first, second) = ("ab".repeat(KEY_BYTES), "0F".repeat(KEY_BYTES));
        let keys = parse(&format!("# ours\n\n1 {first}\n 7\t{second} \n"), &[1, 2, 7]).unwrap();
        let expected = [(1, TreeKey::new([0xab; KEY_BYTES])), (7, TreeKey::new([0x0f; KEY_BYTES]))];
        assert_eq!(keys, expected.into());
        for (text, why) in [
            (format!("1 {first}\n1 {second}"), "line 2: a second key for tree 1"),
            (format!("3 {first}"), "line 1: tree 3 is not in tagnet.trees"),
            (format!("x {first}"), "line 1: no number of a tree at the beginning"),
            ("1".to_owned(), "line 1: a key has 64 hexadecimal digits"),
            (format!("1 {first}0"), "line 1: a key has 64 hexadecimal digits"),
            (format!("1 {}g0", &first[2..]), "line 1: a key has 64 hexadecimal digits"),
            (format!("1 é{}", &first[2..]), "line 1: a key has 64 hexadecimal digits"),
        ] {
            assert_eq!(parse(&text, &[1, 2, 7]).unwrap_err(), why, "{text}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("1 {}", "ab".repeat(KEY_BYTES))).unwrap();
        assert_eq!(read_file(file.path(), &[1]).unwrap().len(), 1);
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(read_file(file.path(), &[1]).unwrap_err().contains("chmod 600"));
        assert!(read_file(Path::new("/no/such/file"), &[1]).is_err());
    }
}
