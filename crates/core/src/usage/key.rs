//! The counts of usage, and the feature of the platform that each belongs to.

/// A feature with a usage limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum ApiFeature {
    Transport,
    Storage,
    RuleEngine,
    JavaScript,
    Tbel,
    Email,
    Sms,
    Alarms,
}

impl ApiFeature {
    /// Every feature.
    pub const ALL: [Self; 8] = [
        Self::Transport,
        Self::Storage,
        Self::RuleEngine,
        Self::JavaScript,
        Self::Tbel,
        Self::Email,
        Self::Sms,
        Self::Alarms,
    ];

    pub(super) const fn index(self) -> usize {
        self as usize
    }

    /// Key of its state among the series of the usage entity.
    pub const fn state_key(self) -> &'static str {
        match self {
            Self::Transport => "transportApiState",
            Self::Storage => "dbApiState",
            Self::RuleEngine => "ruleEngineApiState",
            Self::JavaScript => "jsExecutionApiState",
            Self::Tbel => "tbelExecutionApiState",
            Self::Email => "emailApiState",
            Self::Sms => "smsApiState",
            Self::Alarms => "alarmApiState",
        }
    }

    /// The display name.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Transport => "Device API",
            Self::Storage => "Telemetry persistence",
            Self::RuleEngine => "Rule Engine execution",
            Self::JavaScript => "JavaScript functions execution",
            Self::Tbel => "Tbel functions execution",
            Self::Email => "Email messages",
            Self::Sms => "SMS messages",
            Self::Alarms => "Alarms",
        }
    }
}

/// A counted quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum UsageKey {
    TransportMessages,
    TransportDataPoints,
    /// See [`storage_points`].
    StorageDataPoints,
    RuleEngineExecutions,
    JavaScriptExecutions,
    TbelExecutions,
    Emails,
    Sms,
    CreatedAlarms,
    ActiveDevices,
    InactiveDevices,
}

impl UsageKey {
    /// All counted quantities.
    pub const ALL: [Self; 11] = [
        Self::TransportMessages,
        Self::TransportDataPoints,
        Self::StorageDataPoints,
        Self::RuleEngineExecutions,
        Self::JavaScriptExecutions,
        Self::TbelExecutions,
        Self::Emails,
        Self::Sms,
        Self::CreatedAlarms,
        Self::ActiveDevices,
        Self::InactiveDevices,
    ];

    pub(super) const fn index(self) -> usize {
        self as usize
    }

    /// Name of its monthly series.
    pub const fn count_key(self) -> &'static str {
        match self {
            Self::TransportMessages => "transportMsgCount",
            Self::TransportDataPoints => "transportDataPointsCount",
            Self::StorageDataPoints => "storageDataPointsCount",
            Self::RuleEngineExecutions => "ruleEngineExecutionCount",
            Self::JavaScriptExecutions => "jsExecutionCount",
            Self::TbelExecutions => "tbelExecutionCount",
            Self::Emails => "emailCount",
            Self::Sms => "smsCount",
            Self::CreatedAlarms => "createdAlarmsCount",
            Self::ActiveDevices => "activeDevicesCount",
            Self::InactiveDevices => "inactiveDevicesCount",
        }
    }

    /// Name of its hourly series.
    pub const fn hourly_key(self) -> &'static str {
        match self {
            Self::TransportMessages => "transportMsgCountHourly",
            Self::TransportDataPoints => "transportDataPointsCountHourly",
            Self::StorageDataPoints => "storageDataPointsCountHourly",
            Self::RuleEngineExecutions => "ruleEngineExecutionCountHourly",
            Self::JavaScriptExecutions => "jsExecutionCountHourly",
            Self::TbelExecutions => "tbelExecutionCountHourly",
            Self::Emails => "emailCountHourly",
            Self::Sms => "smsCountHourly",
            Self::CreatedAlarms => "createdAlarmsCountHourly",
            Self::ActiveDevices => "activeDevicesCountHourly",
            Self::InactiveDevices => "inactiveDevicesCountHourly",
        }
    }

    /// Name of the series of its limit.
    pub const fn limit_key(self) -> Option<&'static str> {
        Some(match self {
            Self::TransportMessages => "transportMsgLimit",
            Self::TransportDataPoints => "transportDataPointsLimit",
            Self::StorageDataPoints => "storageDataPointsLimit",
            Self::RuleEngineExecutions => "ruleEngineExecutionLimit",
            Self::JavaScriptExecutions => "jsExecutionLimit",
            Self::TbelExecutions => "tbelExecutionLimit",
            Self::Emails => "emailLimit",
            Self::Sms => "smsLimit",
            Self::CreatedAlarms => "createdAlarmsLimit",
            Self::ActiveDevices | Self::InactiveDevices => return None,
        })
    }

    /// Name of its limit in a tenant profile.
    pub const fn profile_setting(self) -> Option<&'static str> {
        Some(match self {
            Self::TransportMessages => "maxTransportMessages",
            Self::TransportDataPoints => "maxTransportDataPoints",
            Self::StorageDataPoints => "maxDPStorageDays",
            Self::RuleEngineExecutions => "maxREExecutions",
            Self::JavaScriptExecutions => "maxJSExecutions",
            Self::TbelExecutions => "maxTbelExecutions",
            Self::Emails => "maxEmails",
            Self::Sms => "maxSms",
            Self::CreatedAlarms => "maxCreatedAlarms",
            Self::ActiveDevices | Self::InactiveDevices => return None,
        })
    }

    /// The feature that it counts against.
    pub const fn feature(self) -> Option<ApiFeature> {
        Some(match self {
            Self::TransportMessages | Self::TransportDataPoints => ApiFeature::Transport,
            Self::StorageDataPoints => ApiFeature::Storage,
            Self::RuleEngineExecutions => ApiFeature::RuleEngine,
            Self::JavaScriptExecutions => ApiFeature::JavaScript,
            Self::TbelExecutions => ApiFeature::Tbel,
            Self::Emails => ApiFeature::Email,
            Self::Sms => ApiFeature::Sms,
            Self::CreatedAlarms => ApiFeature::Alarms,
            Self::ActiveDevices | Self::InactiveDevices => return None,
        })
    }

    /// Whether it is a measured value rather than a counter.
    pub const fn is_gauge(self) -> bool {
        matches!(self, Self::ActiveDevices | Self::InactiveDevices)
    }

    /// Whether it is reported every ten seconds rather than once per report interval, because each unit costs money.
    pub const fn is_urgent(self) -> bool {
        matches!(self, Self::Emails | Self::Sms)
    }
}

/// Whether a feature may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum UsageState {
    /// The feature may be used.
    #[default]
    Enabled,
    /// The feature may be used, but its limit is near.
    Warning,
    /// The feature may not be used until the next month.
    Disabled,
}

impl UsageState {
    /// The name in the REST API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enabled => "ENABLED",
            Self::Warning => "WARNING",
            Self::Disabled => "DISABLED",
        }
    }

    /// The state of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Enabled, Self::Warning, Self::Disabled]
            .into_iter()
            .find(|state| state.name() == name)
    }

    pub(super) const fn bits(self) -> u32 {
        self as u32
    }

    pub(super) const fn from_bits(bits: u32) -> Self {
        match bits & 3 {
            0 => Self::Enabled,
            1 => Self::Warning,
            _ => Self::Disabled,
        }
    }
}

/// The amount that points with a TTL in seconds (0 for ever) add to [`UsageKey::StorageDataPoints`]: one each, or one
/// for each day that they are kept.
pub const fn storage_points(points: u64, ttl_seconds: u64) -> u64 {
    let days = ttl_seconds / 86_400;
    points.saturating_mul(if days > 1 { days } else { 1 })
}
