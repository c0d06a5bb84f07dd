//! Devices, with their credentials.

use std::collections::HashMap;
use std::sync::Arc;

use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_core::ports::ImportRow;
use fieldline_model::entity::{
    CredentialsType, Device, DeviceCredentials, DeviceProfile, ImportColumnType as Column, TransportType,
};
use fieldline_model::{DeviceCredentialsId, TenantId, kv, new_uuid};
use serde_json::{Map, Value, json};

use super::line::ImportLineFields;
use super::{EntityImport, ImportFieldsMut, ImportLine, ImportedEntity, note};
use crate::services::devices::{self, TOKEN_LENGTH};
use crate::services::{
    ProfileService, ServiceContext, ServiceError, ServiceResult, credentials, ota_packages, profiles,
    random_text,
};

const SECURITY_MODES: [&str; 4] = ["NO_SEC", "PSK", "RPK", "X509"];
const NO_SEC: &str = "NO_SEC";

/// See the module.
pub(super) struct DeviceImport {
    context: Arc<ServiceContext>,
    tenant: TenantId,
    /// Profiles by their names and whether devices of LwM2M have them.
    profiles: HashMap<(String, bool), DeviceProfile>,
}

impl DeviceImport {
    pub(super) fn new(context: &Arc<ServiceContext>, tenant: TenantId) -> Self {
        Self {
            context: Arc::clone(context),
            tenant,
            profiles: HashMap::new(),
        }
    }

    /// The profile of a type; it is created, or turned into one of LwM2M, where need be.
    async fn profile(&mut self, name: &str, is_lwm2m: bool) -> ServiceResult<DeviceProfile> {
        let key = (name.to_owned(), is_lwm2m);
        if let Some(known) = self.profiles.get(&key) {
            return Ok(known.clone());
        }
        let mut profile: DeviceProfile = profiles::of_entity(&self.context, self.tenant, None, name).await?;
        if is_lwm2m && profile.transport_type != TransportType::Lwm2m {
            profile.transport_type = TransportType::Lwm2m;
            if let Some(data) = profile.profile_data.as_object_mut() {
                let configuration = json!({
                    "type": "LWM2M", "bootstrap": [], "bootstrapServerUpdateEnable": false,
                    "observeAttr": { "observe": [], "attribute": [], "telemetry": [], "keyName": {}, "attributeLwm2m": {} },
                    "clientLwM2mSettings": { "clientOnlyObserveAfterConnect": 1, "powerMode": "DRX" },
                });
                data.insert("transportConfiguration".to_owned(), configuration);
            }
            profile = ProfileService::new(&self.context)
                .save(self.tenant, profile.into())
                .await?;
        }
        self.profiles.insert(key, profile.clone());
        Ok(profile)
    }
}

impl EntityImport for DeviceImport {
    type ImportEntity = Device;

    fn parts(device: &mut Device) -> ImportFieldsMut<'_> {
        ImportFieldsMut {
            label: &mut device.label,
            info: &mut device.additional_info,
            type_name: &mut device.device_type,
            version: &mut device.version,
        }
    }

    async fn draft(
        &mut self,
        line: &ImportLine,
        mut device: Device,
        create: bool,
    ) -> ServiceResult<ImportRow<Device>> {
        if let Some(text) = line.field(Column::IsGateway) {
            let is_gateway = text.trim().eq_ignore_ascii_case("true");
            note(&mut device.additional_info, "gateway", is_gateway.into());
        }
        let given = given_credentials(&line.fields)
            .and_then(|given| given.map(credentials::normalize).transpose())
            .map_err(|error| {
                ServiceError::invalid(format!("Invalid device credentials: {}", error.message()))
            })?;
        let is_lwm2m = given
            .as_ref()
            .is_some_and(|given| given.credentials_type == CredentialsType::Lwm2mCredentials);
        devices::check_fields(&device)?;
        let profile = self.profile(&device.device_type, is_lwm2m).await?;
        device.device_profile_id = Some(profile.id);
        device.device_type.clone_from(&profile.name);
        let assigned = devices::assigned_packages(&device);
        ota_packages::check_assigned(&self.context, self.tenant, Some(profile.id), assigned).await?;
        devices::sync_device_data(&mut device.device_data, &profile);
        set_snmp(&line.fields, &mut device);
        let id = device.id;
        let given = given.or_else(|| {
            create.then(|| DeviceCredentials::access_token(id, random_text(TOKEN_LENGTH), self.context.now()))
        });
        let credentials = given.map(|given| DeviceCredentials {
            id: DeviceCredentialsId(new_uuid()),
            device_id: id,
            created_time: self.context.now(),
            version: None,
            ..given
        });
        Ok(ImportRow {
            entity: device,
            create,
            along: credentials,
        })
    }

    fn changes(&self, stored: &ImportedEntity<Device>) -> Vec<EntityChange> {
        let (tenant, id) = (self.tenant, stored.entity.id);
        let mut changes = vec![EntityChange::saved(tenant, id)];
        let given = given_credentials(&stored.line.fields).is_ok_and(|given| given.is_some());
        if given && !stored.create {
            changes.push(EntityChange::new(tenant, id, ChangeKind::Credentials));
        }
        changes
    }

    fn first_attributes(&self, out: &mut Vec<u8>) {
        kv::pack("active", kv::KvValueRef::Bool(false), out);
    }

    fn own_ttl_seconds(&self, device: &Device) -> Option<u32> {
        let has = |profile: &&DeviceProfile| Some(profile.id) == device.device_profile_id;
        self.profiles.values().find(has)?.storage_ttl_seconds()
    }
}

/// The credentials that a line has, if it has any.
fn given_credentials(fields: &ImportLineFields) -> ServiceResult<Option<DeviceCredentials>> {
    let text = |column: Column| fields.get(&column).cloned();
    let given = |credentials_type, credentials_id: Option<String>, credentials_value| {
        Ok(Some(DeviceCredentials {
            credentials_type,
            credentials_id,
            credentials_value,
            ..DeviceCredentials::default()
        }))
    };
    if fields.contains_key(&Column::Lwm2mClientEndpoint) {
        let value = lwm2m_credentials(fields)?;
        return given(CredentialsType::Lwm2mCredentials, None, Some(value.to_string()));
    }
    if let Some(certificate) = text(Column::X509) {
        return given(CredentialsType::X509Certificate, None, Some(certificate));
    }
    let basic = [Column::MqttClientId, Column::MqttUserName, Column::MqttPassword];
    if basic.iter().any(|column| fields.contains_key(column)) {
        let [client, user, password] = basic.map(text);
        let value = json!({ "clientId": client, "userName": user, "password": password });
        return given(CredentialsType::MqttBasic, None, Some(value.to_string()));
    }
    match text(Column::AccessToken) {
        Some(token) => given(CredentialsType::AccessToken, Some(token), None),
        None => Ok(None),
    }
}

fn lwm2m_credentials(fields: &ImportLineFields) -> ServiceResult<Value> {
    let mode = |column: Column| -> ServiceResult<String> {
        let mode = fields.get(&column).map_or(NO_SEC, String::as_str).to_uppercase();
        if SECURITY_MODES.contains(&mode.as_str()) {
            return Ok(mode);
        }
        Err(ServiceError::invalid(format!(
            "Unknown LwM2M security mode: {mode}, (the mode should be: NO_SEC, PSK, RPK, X509)!"
        )))
    };
    let object = |parts: &[(&str, Column)]| -> Map<String, Value> {
        let present = parts
            .iter()
            .filter_map(|(name, column)| Some(((*name).to_owned(), fields.get(column)?.clone().into())));
        present.collect()
    };
    let mut client = object(&[
        ("endpoint", Column::Lwm2mClientEndpoint),
        ("identity", Column::Lwm2mClientIdentity),
        ("key", Column::Lwm2mClientKey),
        ("cert", Column::Lwm2mClientCert),
    ]);
    let client_mode = mode(Column::Lwm2mClientSecurityConfigMode)?;
    client.insert("securityConfigClientMode".to_owned(), client_mode.into());
    let server = |security: Column, id: Column, key: Column| -> ServiceResult<Value> {
        let mut server = object(&[("clientPublicKeyOrId", id), ("clientSecretKey", key)]);
        server.insert("securityMode".to_owned(), mode(security)?.into());
        Ok(server.into())
    };
    Ok(json!({
        "client": client,
        "bootstrap": {
            "bootstrapServer": server(
                Column::Lwm2mBootstrapServerSecurityMode,
                Column::Lwm2mBootstrapServerPublicKeyOrId,
                Column::Lwm2mBootstrapServerSecretKey,
            )?,
            "lwm2mServer": server(
                Column::Lwm2mServerSecurityMode,
                Column::Lwm2mServerClientPublicKeyOrId,
                Column::Lwm2mServerClientSecretKey,
            )?,
        },
    }))
}

/// Where a device of SNMP is reached, for profiles of that transport.
fn set_snmp(fields: &ImportLineFields, device: &mut Device) {
    let Some(host) = fields.get(&Column::SnmpHost) else {
        return;
    };
    let text = |column: Column, default: &str| fields.get(&column).map_or(default, String::as_str).to_owned();
    let port: u16 = text(Column::SnmpPort, "161").trim().parse().unwrap_or(161);
    let configuration = json!({
        "type": "SNMP",
        "host": host,
        "port": port,
        "protocolVersion": text(Column::SnmpVersion, "V2C").to_uppercase(),
        "community": text(Column::SnmpCommunityString, "public"),
    });
    if let Some(data) = device.device_data.as_object_mut() {
        data.insert("transportConfiguration".to_owned(), configuration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(cells: &[(Column, &str)]) -> ImportLineFields {
        cells
            .iter()
            .map(|(column, text)| (*column, (*text).to_owned()))
            .collect()
    }

    #[test]
    fn credentials_are_made_of_the_columns_that_are_filled() {
        let given = |cells: &[(Column, &str)]| {
            let given = given_credentials(&fields(cells)).unwrap();
            given.map(|given| credentials::normalize(given).unwrap())
        };
        assert!(given(&[]).is_none());
        let token = given(&[(Column::AccessToken, "t")]).unwrap();
        assert_eq!(token.credentials_id.as_deref(), Some("t"));
        let basic = given(&[
            (Column::MqttUserName, "u"),
            (Column::MqttPassword, "p"),
            (Column::AccessToken, "t"),
        ])
        .unwrap();
        assert_eq!(
            (basic.credentials_type, basic.credentials_id.as_deref()),
            (CredentialsType::MqttBasic, Some("u"))
        );
        let lwm2m = given(&[
            (Column::Lwm2mClientEndpoint, "urn:1"),
            (Column::Lwm2mClientSecurityConfigMode, "psk"),
            (Column::Lwm2mClientIdentity, "me"),
            (Column::Lwm2mClientKey, "00ff"),
        ])
        .unwrap();
        assert_eq!(
            (lwm2m.credentials_type, lwm2m.credentials_id.as_deref()),
            (CredentialsType::Lwm2mCredentials, Some("me"))
        );
        let wrong = fields(&[
            (Column::Lwm2mClientEndpoint, "x"),
            (Column::Lwm2mServerSecurityMode, "y"),
        ]);
        assert!(given_credentials(&wrong).is_err());
    }
}
