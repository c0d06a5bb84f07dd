//! How far each series is copied, in a file of lines. A line is written after the points that it tells of are durable; the
//! last one of a series counts, and one that a crash has cut off does not.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;

use fieldline_model::{EntityId, EntityKey};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The first line: which installation was filled.
#[derive(Serialize, Deserialize)]
struct ProgressHeader {
    installation: String,
}

/// A line.
#[derive(Serialize, Deserialize)]
struct ProgressLine {
    from: Uuid,
    to: Uuid,
    series: String,
    until: i64,
}

/// A series of an entity there, and the entity here that it was copied to: deleted and made anew, it needs a new copy.
type SeriesCopyKey = (Uuid, Uuid, String);

/// How far each series is copied.
pub(super) struct HistoryProgress {
    file: File,
    until: HashMap<SeriesCopyKey, i64>,
}

impl HistoryProgress {
    /// Opens the file, making it where there is none.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if it is not such a file, or tells of another installation.
    pub(super) fn open(path: &Path, installation: &str) -> io::Result<Self> {
        let mut until = HashMap::new();
        let mut has_header = false;
        if path.exists() {
            let mut lines = BufReader::new(File::open(path)?).lines();
            if let Some(first) = lines.next().transpose()? {
                let header: Option<ProgressHeader> = serde_json::from_str(&first).ok();
                if header.is_none_or(|header| header.installation != installation) {
                    return Err(refused(path));
                }
                has_header = true;
            }
            for line in lines {
                // One that was cut off cannot be read; what it told of is copied again.
                if let Ok(line) = serde_json::from_str::<ProgressLine>(&line?) {
                    until.insert((line.from, line.to, line.series), line.until);
                }
            }
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        // The line behind one that was cut off must not become a part of it.
        let begin = match has_header {
            true => "\n".to_owned(),
            false => line_of(&ProgressHeader {
                installation: installation.to_owned(),
            })?,
        };
        file.write_all(begin.as_bytes())?;
        Ok(Self { file, until })
    }

    /// The time of the last point of a series that is copied.
    pub(super) fn until(&self, from: EntityId, to: EntityKey, series: &str) -> Option<i64> {
        self.until
            .get(&(from.id, to.entity.id, series.to_owned()))
            .copied()
    }

    /// Notes how far series are.
    pub(super) fn note(
        &mut self,
        copied: impl Iterator<Item = (EntityId, EntityKey, String, i64)>,
    ) -> io::Result<()> {
        let mut lines = String::new();
        for (from, to, series, until) in copied {
            let line = ProgressLine {
                from: from.id,
                to: to.entity.id,
                series,
                until,
            };
            lines.push_str(&line_of(&line)?);
            self.until.insert((line.from, line.to, line.series), line.until);
        }
        self.file.write_all(lines.as_bytes())
    }
}

fn refused(path: &Path) -> io::Error {
    let message = format!(
        "{} tells of another installation, or is another file: name a new one with --progress",
        path.display()
    );
    io::Error::new(io::ErrorKind::InvalidData, message)
}

fn line_of(line: &impl Serialize) -> io::Result<String> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use fieldline_model::{EntityType, TenantId};

    use super::*;

    #[test]
    fn the_last_line_of_a_series_counts_and_a_cut_off_one_does_not() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("progress");
        let from = EntityId::new(EntityType::Device, Uuid::from_u128(1));
        let to = EntityKey {
            tenant: TenantId(Uuid::from_u128(2)),
            entity: EntityId::new(EntityType::Device, Uuid::from_u128(3)),
        };
        let mut progress = HistoryProgress::open(&path, "one")?;
        let copied = [5, 9].map(|until| (from, to, "level".to_owned(), until));
        progress.note(copied.into_iter())?;
        let whole = std::fs::read(&path)?;
        std::fs::write(&path, &whole[..whole.len() - 4])?;

        let mut progress = HistoryProgress::open(&path, "one")?;
        assert_eq!(progress.until(from, to, "level"), Some(5));
        progress.note([(from, to, "level".to_owned(), 7)].into_iter())?;
        let progress = HistoryProgress::open(&path, "one")?;
        assert_eq!(progress.until(from, to, "level"), Some(7));
        let other = EntityKey {
            entity: EntityId::new(EntityType::Device, Uuid::from_u128(4)),
            ..to
        };
        assert_eq!(progress.until(from, other, "level"), None);

        let refused = HistoryProgress::open(&path, "another").map(|_| ());
        assert_eq!(
            refused.map_err(|error| error.kind()),
            Err(io::ErrorKind::InvalidData)
        );
        Ok(())
    }
}
