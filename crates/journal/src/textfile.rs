//! Small text files with a checksum, replaced as a whole. An operator can read them.

use std::io::{self, IoSlice};

use fieldline_core::ports::JournalError;

use crate::disk::{JournalDisk, read_exact_at, write_all_at};
use crate::error::failed;

/// A larger file is not one of ours.
const MAX_BYTES: u64 = 64 << 20;

/// The durability of a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplaceDurability {
    /// The new contents are durable when the call returns.
    Durable,
    /// A crash of the machine may restore the old contents, or leave contents that fail their checksum.
    Quick,
}

/// The result of reading a file.
pub(crate) enum TextFileContents {
    Missing,
    Damaged,
    Lines(Vec<String>),
}

pub(crate) fn read(disk: &dyn JournalDisk, name: &str) -> Result<TextFileContents, JournalError> {
    let context = || format!("read {}", disk.describe(name));
    let file = match disk.open(name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(TextFileContents::Missing),
        Err(error) => return Err(failed(context())(error)),
    };
    let length = file.len().map_err(failed(context()))?;
    if length > MAX_BYTES {
        return Ok(TextFileContents::Damaged);
    }
    let mut bytes = vec![0; length as usize];
    read_exact_at(file.as_ref(), &mut bytes, 0).map_err(failed(context()))?;
    Ok(parse(bytes).map_or(TextFileContents::Damaged, TextFileContents::Lines))
}

fn parse(bytes: Vec<u8>) -> Option<Vec<String>> {
    let text = String::from_utf8(bytes).ok()?;
    let (body, crc) = text.strip_suffix('\n')?.rsplit_once("checksum ")?;
    let crc = u32::from_str_radix(crc, 16).ok()?;
    if crc32c::crc32c(body.as_bytes()) != crc {
        return None;
    }
    Some(body.lines().map(str::to_owned).collect())
}

pub(crate) fn replace(
    disk: &dyn JournalDisk,
    name: &str,
    mut body: String,
    care: ReplaceDurability,
) -> Result<(), JournalError> {
    let crc = crc32c::crc32c(body.as_bytes());
    body.push_str(&format!("checksum {crc:08x}\n"));
    let temporary = format!("{name}.tmp");
    let write = || -> io::Result<()> {
        let file = disk.create(&temporary)?;
        write_all_at(file.as_ref(), &mut [IoSlice::new(body.as_bytes())], 0)?;
        if care == ReplaceDurability::Durable {
            file.sync()?;
        }
        disk.rename(&temporary, name)?;
        if care == ReplaceDurability::Durable {
            disk.sync_directory()?;
        }
        Ok(())
    };
    write().map_err(failed(format!("write {}", disk.describe(name))))
}
