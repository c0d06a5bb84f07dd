//! Queries over time series and attributes, and their answers.

use crate::kv::KvValue;

/// A value of a series at a time (milliseconds since 1970, UTC).
#[derive(Debug, Clone, PartialEq)]
pub struct DataPoint {
    /// Time of the value, milliseconds.
    pub ts: i64,
    /// The value.
    pub value: KvValue,
}

impl DataPoint {
    /// Bytes that it takes in memory, its text included.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.value.heap_bytes()
    }
}

/// The newest value of a named series.
#[derive(Debug, Clone, PartialEq)]
pub struct LatestValue {
    /// Name of the series.
    pub key: String,
    /// Its newest value.
    pub point: DataPoint,
}

/// Order of raw points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointOrder {
    /// Oldest first.
    Ascending,
    /// Newest first.
    Descending,
}

/// Raw points of one series with `start <= ts < end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeQuery {
    /// First time included, milliseconds.
    pub start: i64,
    /// First time no longer included, milliseconds.
    pub end: i64,
    /// At most this many points.
    pub limit: usize,
    /// Which end comes first, and is kept where `limit` cuts.
    pub order: PointOrder,
}

/// How the values of a bucket become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregation {
    /// Smallest number; smallest text where the bucket holds no number.
    Min,
    /// Largest number; largest text where the bucket holds no number.
    Max,
    /// Mean of the numbers.
    Avg,
    /// Sum of the numbers.
    Sum,
    /// How many values of any type.
    Count,
}

/// One bucket of an aggregation: points with `start <= ts < end` become one point at `ts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AggregationBucket {
    /// First time included, milliseconds.
    pub start: i64,
    /// First time no longer included, milliseconds.
    pub end: i64,
}

impl AggregationBucket {
    /// Time of the result: the start plus half the width.
    pub fn middle(self) -> i64 {
        self.start + (self.end - self.start) / 2
    }
}

/// Scope of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum AttributeScope {
    /// Written by the device.
    Client = 1,
    /// Written by people, sent to the device.
    Shared = 2,
    /// Written by people and the platform, hidden from the device.
    Server = 3,
}

impl AttributeScope {
    /// All scopes.
    pub const ALL: [AttributeScope; 3] = [
        AttributeScope::Client,
        AttributeScope::Shared,
        AttributeScope::Server,
    ];

    /// The name in the REST API, such as `SERVER_SCOPE`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "CLIENT_SCOPE",
            Self::Shared => "SHARED_SCOPE",
            Self::Server => "SERVER_SCOPE",
        }
    }

    /// The scope of that name in the REST API.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    /// The scope with a stored code.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Client),
            2 => Some(Self::Shared),
            3 => Some(Self::Server),
            _ => None,
        }
    }
}

/// An attribute with the time of its last change.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// Name.
    pub key: String,
    /// Value.
    pub value: KvValue,
    /// Time of the last write, milliseconds.
    pub last_update_ts: i64,
}
