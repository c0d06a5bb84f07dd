//! OTA packages: firmware and software for devices.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::EntityDraft;
use super::draft::stored_entity;
use crate::{DeviceProfileId, OtaPackageId, TenantId};

/// What a package is for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "UPPERCASE")]
#[schema(as = OtaPackageType)]
pub enum OtaKind {
    /// Firmware.
    Firmware,
    /// Software.
    Software,
}

impl OtaKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Firmware, Self::Software];

    /// The name in the REST API and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Firmware => "FIRMWARE",
            Self::Software => "SOFTWARE",
        }
    }

    /// How it is called within a message.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Firmware => "firmware",
            Self::Software => "software",
        }
    }

    /// What the keys of its attributes and telemetry begin with, before an underscore.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Firmware => "fw",
            Self::Software => "sw",
        }
    }

    /// The key of an attribute or of telemetry: `fw_title`.
    pub fn key(self, what: &str) -> String {
        format!("{}_{what}", self.prefix())
    }
}

impl FromStr for OtaKind {
    type Err = UnknownOtaName;

    fn from_str(name: &str) -> Result<Self, UnknownOtaName> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| UnknownOtaName("OtaPackageType", name.to_owned()))
    }
}

/// A name that no kind of packages, or no algorithm, has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("No enum constant {0}.{1}")]
pub struct UnknownOtaName(&'static str, String);

/// How the checksum of a package is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum ChecksumAlgorithm {
    #[serde(rename = "MD5")]
    Md5,
    #[serde(rename = "SHA256")]
    Sha256,
    #[serde(rename = "SHA384")]
    Sha384,
    #[serde(rename = "SHA512")]
    Sha512,
    #[serde(rename = "CRC32")]
    Crc32,
    #[serde(rename = "MURMUR3_32")]
    Murmur3x32,
    #[serde(rename = "MURMUR3_128")]
    Murmur3x128,
}

impl ChecksumAlgorithm {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Md5,
        Self::Sha256,
        Self::Sha384,
        Self::Sha512,
        Self::Crc32,
        Self::Murmur3x32,
        Self::Murmur3x128,
    ];

    /// The name in the REST API and in attributes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha256 => "SHA256",
            Self::Sha384 => "SHA384",
            Self::Sha512 => "SHA512",
            Self::Crc32 => "CRC32",
            Self::Murmur3x32 => "MURMUR3_32",
            Self::Murmur3x128 => "MURMUR3_128",
        }
    }
}

impl FromStr for ChecksumAlgorithm {
    type Err = UnknownOtaName;

    fn from_str(name: &str) -> Result<Self, UnknownOtaName> {
        let upper = name.to_uppercase();
        let known = Self::ALL.into_iter().find(|algorithm| algorithm.name() == upper);
        known.ok_or(UnknownOtaName("ChecksumAlgorithm", upper))
    }
}

/// A package without its data.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct OtaPackageInfo {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<OtaPackageId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: OtaPackageId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The tenant it belongs to; set by the platform.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// The profile of the devices it is for.
    pub device_profile_id: Option<DeviceProfileId>,
    /// What it is for.
    #[serde(rename = "type")]
    pub kind: Option<OtaKind>,
    /// Title; together with the version unique in the tenant.
    #[serde(deserialize_with = "super::null_as_default")]
    pub title: String,
    /// Same as the title; ignored in requests.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// Version, as devices are told.
    #[serde(deserialize_with = "super::null_as_default")]
    pub version: String,
    /// Tells builds of one version apart.
    pub tag: Option<String>,
    /// Where devices get it from, in place of data that the platform holds.
    pub url: Option<String>,
    /// Whether there is something to download; ignored in requests.
    #[serde(deserialize_with = "super::null_as_default")]
    pub has_data: bool,
    /// Name of the file that was uploaded.
    pub file_name: Option<String>,
    /// Type of its content.
    pub content_type: Option<String>,
    /// How the checksum was made.
    pub checksum_algorithm: Option<ChecksumAlgorithm>,
    /// Checksum of the data, in hexadecimal digits.
    pub checksum: Option<String>,
    /// Size of the data, bytes.
    pub data_size: Option<i64>,
    /// Id in the system it was imported from.
    pub external_id: Option<OtaPackageId>,
    /// Free-form JSON.
    pub additional_info: Option<Value>,
}

stored_entity!(OtaPackageInfo: OtaPackageId);

impl OtaPackageInfo {
    /// Where devices get it from, if that is not the platform.
    pub fn link(&self) -> Option<&str> {
        self.url.as_deref().filter(|url| !url.is_empty())
    }
}

/// A package as it is created or changed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SaveOtaPackageInfoRequest {
    /// The package.
    #[schema(value_type = OtaPackageInfo)]
    #[serde(flatten)]
    pub info: EntityDraft<OtaPackageInfo>,
    /// Whether devices get it from a URL, which has to be given then.
    #[serde(deserialize_with = "super::null_as_default")]
    pub uses_url: bool,
}
