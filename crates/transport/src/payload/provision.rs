//! Provisioning requests, as JSON or as a Protobuf message. The response has the format of the request.

use fieldline_entities::services::{ProvisionRequest, ProvisionResponse, ProvisionStatus};
use fieldline_model::entity::CredentialsType;
use fieldline_protobuf::MessageError;
use fieldline_protobuf::api::{
    self, CredentialsDataProto, ProvisionDeviceRequestMsg, ProvisionDeviceResponseMsg, ResponseStatus,
};
use prost::Message as _;

use super::{PayloadError, PayloadFormat};

/// A provisioning request, and whether it came as a Protobuf message.
pub(crate) struct ProvisionPayload {
    pub(crate) request: ProvisionRequest,
    is_protobuf: bool,
}

impl ProvisionPayload {
    /// Reads a request as JSON or, if it is not JSON, as a Protobuf message.
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, PayloadError> {
        match super::provision_request(payload) {
            Ok(request) => Ok(Self {
                request,
                is_protobuf: false,
            }),
            Err(error) => Ok(Self {
                request: of_message(payload).ok_or(error)?,
                is_protobuf: true,
            }),
        }
    }

    /// The format of the request, and so of the response.
    pub(crate) const fn format(&self) -> PayloadFormat<'static> {
        match self.is_protobuf {
            true => PayloadFormat::Protobuf(None),
            false => PayloadFormat::Json,
        }
    }

    /// Encodes the response.
    pub(crate) fn answer(&self, provisioned: &ProvisionResponse) -> Vec<u8> {
        if !self.is_protobuf {
            return serde_json::to_vec(provisioned).unwrap_or_default();
        }
        let status = match provisioned.status {
            ProvisionStatus::Success => ResponseStatus::Success,
            ProvisionStatus::NotFound => ResponseStatus::NotFound,
            ProvisionStatus::Failure => ResponseStatus::Failure,
        };
        let (kind, value) = provisioned.credentials().unwrap_or_default();
        let message = ProvisionDeviceResponseMsg {
            status: status.into(),
            credentials_type: match kind {
                CredentialsType::AccessToken => api::CredentialsTypeProto::AccessToken,
                CredentialsType::X509Certificate => api::CredentialsTypeProto::X509Certificate,
                CredentialsType::MqttBasic => api::CredentialsTypeProto::MqttBasic,
                CredentialsType::Lwm2mCredentials => api::CredentialsTypeProto::Lwm2mCredentials,
            }
            .into(),
            credentials_value: value,
        };
        message.encode_to_vec()
    }
}

fn of_message(payload: &[u8]) -> Option<ProvisionRequest> {
    let message: Result<ProvisionDeviceRequestMsg, MessageError> = api::read(payload);
    let message = message.ok()?;
    let kind = match api::CredentialsTypeProto::try_from(message.credentials_type).ok()? {
        api::CredentialsTypeProto::AccessToken => CredentialsType::AccessToken,
        api::CredentialsTypeProto::X509Certificate => CredentialsType::X509Certificate,
        api::CredentialsTypeProto::MqttBasic => CredentialsType::MqttBasic,
        api::CredentialsTypeProto::Lwm2mCredentials => CredentialsType::Lwm2mCredentials,
    };
    let profile = message.provision_device_credentials_msg?;
    let CredentialsDataProto {
        validate_device_token_request_msg: token,
        validate_device_x509_cert_request_msg: certificate,
        validate_basic_mqtt_cred_request_msg: basic,
    } = message.credentials_data_proto.unwrap_or_default();
    // Proto3 decodes an unset string field as empty.
    let given = |text: String| Some(text).filter(|text| !text.is_empty());
    let basic = basic.unwrap_or_default();
    Some(ProvisionRequest {
        device_name: given(message.device_name),
        provision_device_key: profile.provision_device_key,
        provision_device_secret: profile.provision_device_secret,
        credentials_type: Some(kind),
        token: token.and_then(|token| given(token.token)),
        client_id: given(basic.client_id),
        username: given(basic.user_name),
        password: given(basic.password),
        hash: certificate.and_then(|certificate| given(certificate.hash)),
        gateway: Some(message.gateway),
    })
}
