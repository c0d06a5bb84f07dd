//! Resources: files that people upload, such as images, scripts, key stores and models of LwM2M objects.

use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use uuid::Uuid;

use super::draft::stored_entity;
use crate::{TbResourceId, TenantId};

/// What is before the link of an image in texts that refer to one.
pub const IMAGE_PREFIX: &str = "tb-image;";
/// What is before the link of another resource.
pub const RESOURCE_PREFIX: &str = "tb-resource;";

/// A name that no kind of resources has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("No enum constant {0}.{1}")]
pub struct UnknownResourceName(&'static str, String);

macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal, $about:literal;)* }) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
        )]
        pub enum $name {
            $(#[doc = $about] #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in the REST API and in the database.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl FromStr for $name {
            type Err = UnknownResourceName;

            fn from_str(name: &str) -> Result<Self, UnknownResourceName> {
                let known = Self::ALL.iter().find(|known| known.name() == name);
                known.copied().ok_or_else(|| {
                    UnknownResourceName(stringify!($name), name.chars().take(64).collect())
                })
            }
        }
    };
}

named_enum! {
    /// What a resource is.
    ResourceType {
        Lwm2mModel = "LWM2M_MODEL", "Model of an LwM2M object, as XML.";
        Jks = "JKS", "Java key store.";
        Pkcs12 = "PKCS_12", "Key store of the kind PKCS #12.";
        JsModule = "JS_MODULE", "Script of widgets.";
        Image = "IMAGE", "Picture.";
        Dashboard = "DASHBOARD", "Dashboard that user interfaces show as a page of their own.";
        General = "GENERAL", "Any file.";
    }
}

named_enum! {
    /// What it is more exactly.
    ResourceSubType {
        Image = "IMAGE", "Picture.";
        ScadaSymbol = "SCADA_SYMBOL", "Symbol of SCADA drawings.";
        Extension = "EXTENSION", "Script that adds components to a user interface.";
        Module = "MODULE", "Script that others import from.";
    }
}

impl ResourceType {
    /// Type of its content, where the kind says that.
    pub const fn media_type(self) -> Option<&'static str> {
        match self {
            Self::Lwm2mModel => Some("application/xml"),
            Self::Jks => Some("application/x-java-keystore"),
            Self::Pkcs12 => Some("application/x-pkcs12"),
            Self::JsModule => Some("application/javascript"),
            Self::Dashboard => Some("application/json"),
            Self::Image | Self::General => None,
        }
    }

    /// Whether users of customers may read it.
    pub const fn open_to_customers(self) -> bool {
        matches!(self, Self::JsModule | Self::Image | Self::Dashboard)
    }

    /// Whether a tenant may replace its data.
    pub const fn is_updatable(self) -> bool {
        matches!(
            self,
            Self::JsModule | Self::Image | Self::Dashboard | Self::General
        )
    }
}

/// Where the data of a resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoredFile {
    /// Id of the file.
    pub file: Uuid,
    /// Its bytes.
    pub size: u64,
    /// The file with a smaller picture of it, and its bytes.
    pub preview: Option<(Uuid, u64)>,
}

/// A resource without its data.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct TbResourceInfo {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<TbResourceId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: TbResourceId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The tenant it belongs to, the null id for what the system shares; set by the platform.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// Title.
    #[serde(deserialize_with = "super::null_as_default")]
    pub title: String,
    /// What it is.
    pub resource_type: Option<ResourceType>,
    /// What it is more exactly.
    pub resource_sub_type: Option<ResourceSubType>,
    /// Name within links, unique in the tenant for each type; made from the name of the file.
    pub resource_key: Option<String>,
    /// Whether everybody who knows the public key may read it.
    #[serde(rename = "public", deserialize_with = "super::null_as_default")]
    pub is_public: bool,
    /// Name within public links.
    pub public_resource_key: Option<String>,
    /// Changes with its data; set by the platform.
    pub etag: Option<String>,
    /// Name of the file.
    pub file_name: Option<String>,
    /// What is known of its data, such as `mediaType`.
    pub descriptor: Option<Value>,
    /// Id in the system it was imported from.
    pub external_id: Option<TbResourceId>,
    /// Where its data is.
    #[serde(skip)]
    pub stored: StoredFile,
    /// What user interfaces need to know of the LwM2M object of a model.
    #[serde(skip)]
    pub lwm2m_object: Option<Value>,
    /// Counts the updates, so that none is lost.
    #[serde(skip)]
    pub version: Option<i64>,
}

stored_entity!(TbResourceInfo: TbResourceId);

impl TbResourceInfo {
    /// The path it is read at.
    pub fn link(&self) -> String {
        let scope = if self.tenant_id.is_null() {
            "system"
        } else {
            "tenant"
        };
        let key = self.resource_key.as_deref().unwrap_or_default();
        match self.resource_type {
            Some(ResourceType::Image) => format!("/api/images/{scope}/{key}"),
            kind => {
                let kind = kind.map_or("", ResourceType::name).to_lowercase();
                format!("/api/resource/{kind}/{scope}/{key}")
            }
        }
    }

    /// The path at which everybody reads it.
    pub fn public_link(&self) -> Option<String> {
        let key = self.public_resource_key.as_deref()?;
        (self.is_public && self.resource_type == Some(ResourceType::Image))
            .then(|| format!("/api/images/public/{key}"))
    }

    /// Type of its content.
    pub fn media_type(&self) -> Option<&str> {
        match self.resource_type.and_then(ResourceType::media_type) {
            Some(fixed) => Some(fixed),
            None => self.descriptor.as_ref()?.get("mediaType")?.as_str(),
        }
    }

    /// A text that the descriptor has about the smaller picture.
    pub fn of_preview(&self, name: &str) -> Option<&str> {
        self.descriptor
            .as_ref()?
            .get("previewDescriptor")?
            .get(name)?
            .as_str()
    }
}

/// Its fields, and those that follow from them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownResource<'a> {
    #[serde(with = "super::id_or_null")]
    id: TbResourceId,
    created_time: i64,
    tenant_id: TenantId,
    title: &'a str,
    name: &'a str,
    resource_type: Option<ResourceType>,
    resource_sub_type: Option<ResourceSubType>,
    resource_key: Option<&'a str>,
    public: bool,
    public_resource_key: Option<&'a str>,
    etag: Option<&'a str>,
    file_name: Option<&'a str>,
    descriptor: Option<&'a Value>,
    external_id: Option<TbResourceId>,
    link: String,
    public_link: Option<String>,
}

impl Serialize for TbResourceInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = ShownResource {
            id: self.id,
            created_time: self.created_time,
            tenant_id: self.tenant_id,
            title: &self.title,
            name: &self.title,
            resource_type: self.resource_type,
            resource_sub_type: self.resource_sub_type,
            resource_key: self.resource_key.as_deref(),
            public: self.is_public,
            public_resource_key: self.public_resource_key.as_deref(),
            etag: self.etag.as_deref(),
            file_name: self.file_name.as_deref(),
            descriptor: self.descriptor.as_ref(),
            external_id: self.external_id,
            link: self.link(),
            public_link: self.public_link(),
        };
        shown.serialize(serializer)
    }
}

/// A resource with its data, as one body.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct TbResource {
    /// The resource.
    #[serde(flatten)]
    pub info: TbResourceInfo,
    /// Its data as base64.
    pub data: Option<String>,
}

/// A resource with its data, as it goes from one installation to another.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceExportData {
    /// The path it was read at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<ResourceType>,
    /// What it is more exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_type: Option<ResourceSubType>,
    /// Name within links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_key: Option<String>,
    /// Name of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
    /// Name within public links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_resource_key: Option<String>,
    /// Whether everybody who knows the public key may read it.
    #[serde(rename = "public", deserialize_with = "super::null_as_default")]
    pub is_public: bool,
    /// Type of its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Its data as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

/// What still refers to a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceReference {
    /// Which entity.
    #[schema(value_type = Object)]
    pub id: crate::EntityId,
    /// Its name.
    pub name: String,
    /// The same.
    pub title: String,
    /// The tenant it belongs to.
    pub tenant_id: TenantId,
}
