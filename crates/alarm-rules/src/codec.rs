//! The stored form of a state.
//!
//! `version 2 · definition u64 · anchor zigzag · schedules varint · running count · running… · alarm count · alarm… ·
//! fingerprint count · fingerprint u32… · newest count · newest…`, where running is `rule u64 · first zigzag · last zigzag ·
//! count varint`, an alarm is `alarm u64 · 0`, or `alarm u64 · 1 + severity · id 16 bytes · start zigzag`, and the time of a
//! newest point is `0`, or `1 · time zigzag`. Numbers are little-endian. Version 1 ends with the fingerprints.

use fieldline_model::entity::AlarmSeverity;
use fieldline_model::kv::{CorruptData, read_varint, take_array, write_varint};
use uuid::Uuid;

use super::rules::{MAX_ALARMS, MAX_INPUTS, MAX_RULES_PER_ALARM};
use super::state::{ActiveAlarm, AlarmEntry, AlarmRuleProgress, AlarmRuleState, PartialMatch};

const VERSION: u8 = 2;
/// Without the times of the newest points.
const VERSION_1: u8 = 1;

impl AlarmRuleState {
    /// Appends the stored form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let nothing = AlarmRuleProgress::default();
        let parts = self.parts.as_deref().unwrap_or(&nothing);
        // Older programs read what they know.
        out.push(if parts.newest.is_empty() {
            VERSION_1
        } else {
            VERSION
        });
        out.extend_from_slice(&self.definition.to_le_bytes());
        write_signed(self.anchor_ts, out);
        write_varint(u64::from(self.schedules), out);
        write_varint(parts.running.len() as u64, out);
        for running in &parts.running {
            out.extend_from_slice(&running.rule.to_le_bytes());
            write_signed(running.first_ts, out);
            write_signed(running.last_ts, out);
            write_varint(u64::from(running.count), out);
        }
        write_varint(parts.alarms.len() as u64, out);
        for entry in &parts.alarms {
            out.extend_from_slice(&entry.alarm.to_le_bytes());
            match entry.active {
                None => out.push(0),
                Some(active) => {
                    out.push(1 + active.severity as u8);
                    out.extend_from_slice(active.id.as_bytes());
                    write_signed(active.start_ts, out);
                }
            }
        }
        write_varint(parts.seen.len() as u64, out);
        for fingerprint in &parts.seen {
            out.extend_from_slice(&fingerprint.to_le_bytes());
        }
        if parts.newest.is_empty() {
            return;
        }
        write_varint(parts.newest.len() as u64, out);
        for newest in &parts.newest {
            match newest {
                None => out.push(0),
                Some(ts) => {
                    out.push(1);
                    write_signed(*ts, out);
                }
            }
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// Bytes that are no state of this version.
    pub fn decode(mut bytes: &[u8]) -> Result<Self, CorruptData> {
        let bytes = &mut bytes;
        let [version] = take_array(bytes)?;
        if version != VERSION && version != VERSION_1 {
            return Err(CorruptData("unknown version of alarm state"));
        }
        let definition = u64::from_le_bytes(take_array(bytes)?);
        let anchor_ts = read_signed(bytes)?;
        let schedules =
            u16::try_from(read_varint(bytes)?).map_err(|_| CorruptData("schedules of alarm rules"))?;
        let mut parts = AlarmRuleProgress::default();
        for _ in 0..read_count(bytes, MAX_ALARMS * MAX_RULES_PER_ALARM)? {
            parts.running.push(PartialMatch {
                rule: u64::from_le_bytes(take_array(bytes)?),
                first_ts: read_signed(bytes)?,
                last_ts: read_signed(bytes)?,
                count: u32::try_from(read_varint(bytes)?)
                    .map_err(|_| CorruptData("count of an alarm rule"))?,
            });
        }
        for _ in 0..read_count(bytes, MAX_ALARMS)? {
            let alarm = u64::from_le_bytes(take_array(bytes)?);
            let [tag] = take_array(bytes)?;
            let active = match tag.checked_sub(1) {
                None => None,
                Some(severity) => Some(ActiveAlarm {
                    severity: *AlarmSeverity::ALL
                        .get(usize::from(severity))
                        .ok_or(CorruptData("severity of an alarm"))?,
                    id: Uuid::from_bytes(take_array(bytes)?),
                    start_ts: read_signed(bytes)?,
                }),
            };
            parts.alarms.push(AlarmEntry { alarm, active });
        }
        let mut seen = Vec::new();
        for _ in 0..read_count(bytes, MAX_INPUTS)? {
            seen.push(u32::from_le_bytes(take_array(bytes)?));
        }
        parts.seen = seen.into();
        if version != VERSION_1 {
            let mut newest = Vec::new();
            for _ in 0..read_count(bytes, MAX_INPUTS)? {
                newest.push(match take_array(bytes)? {
                    [0] => None,
                    [1] => Some(read_signed(bytes)?),
                    _ => return Err(CorruptData("time of a newest point")),
                });
            }
            parts.newest = newest.into();
        }
        if !bytes.is_empty() {
            return Err(CorruptData("bytes behind alarm state"));
        }
        let mut state = Self {
            definition,
            anchor_ts,
            parts: Some(Box::new(parts)),
            schedules,
        };
        state.compact();
        Ok(state)
    }
}

fn read_count(bytes: &mut &[u8], max: usize) -> Result<usize, CorruptData> {
    let count = usize::try_from(read_varint(bytes)?).unwrap_or(usize::MAX);
    if count > max {
        Err(CorruptData("too many entries in alarm state"))
    } else {
        Ok(count)
    }
}

fn write_signed(value: i64, out: &mut Vec<u8>) {
    write_varint(((value << 1) ^ (value >> 63)) as u64, out);
}

fn read_signed(bytes: &mut &[u8]) -> Result<i64, CorruptData> {
    let value = read_varint(bytes)?;
    Ok(((value >> 1) as i64) ^ -((value & 1) as i64))
}
