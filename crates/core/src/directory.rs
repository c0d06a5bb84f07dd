//! Directories that survive a power failure together with the files in them.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

/// Creates a directory, and its missing parents, unless it exists. Its name is durable afterwards, which an fsync of a
/// file in it does not ensure. New directories get the permissions `mode`, less those the umask removes.
///
/// # Errors
/// A directory could not be created or made durable.
pub fn create_durably(path: &Path, mode: u32) -> io::Result<()> {
    create_with(path, mode, &mut |parent| match File::open(parent) {
        // Without the right to read the parent directory, the process cannot sync it.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        opened => opened?.sync_all(),
    })
}

fn create_with(path: &Path, mode: u32, sync: &mut impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    if !parent.is_dir() {
        create_with(parent, mode, sync)?;
    }
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
        created => created?,
    }
    // Needed even for an existing directory: the start that created it may have crashed before this sync.
    sync(parent)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Creates a directory; returns the directories that were synced.
    fn create(path: &Path) -> io::Result<Vec<PathBuf>> {
        let mut synced = Vec::new();
        create_with(path, 0o777, &mut |parent| {
            synced.push(parent.to_owned());
            Ok(())
        })?;
        Ok(synced)
    }

    #[test]
    fn each_directory_that_is_created_is_made_durable_in_the_one_above_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().to_owned();
        let deep = root.join("data/journal");
        assert_eq!(create(&deep).unwrap(), [root.clone(), root.join("data")]);
        assert!(deep.is_dir());
        assert_eq!(create(&deep).unwrap(), [root.join("data")], "again at each start");
        create_durably(&root.join("other/series"), 0o700).unwrap();
        assert!(root.join("other/series").is_dir());
        std::fs::write(root.join("file"), "").unwrap();
        assert!(create(&root.join("file")).is_err());
        assert!(create(&root.join("file/below")).is_err());
    }
}
