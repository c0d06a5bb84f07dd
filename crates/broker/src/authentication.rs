//! Enhanced authentication of clients that are connected (MQTT 5 §4.12.1).

use std::net::IpAddr;
use std::sync::Arc;

use fieldline_codec::{AuthPacket, MqttProperty, MqttPropertyBuf, MqttProtocolVersion, ReasonCode};
use fieldline_core::ports::{
    AuthExchange, AuthStep, BegunExchange, BrokerLogin, BrokerRefusal, ClientAuthenticator, TopicRules,
};

use crate::connection::BrokerConnection;
use crate::lifecycle::may_have;
use crate::login::{Refused, refused_by_access};
use crate::session::SessionInner;

/// How a client proves again who it is.
pub(crate) struct ClientAuthentication {
    authenticator: Arc<dyn ClientAuthenticator>,
    /// The method of its CONNECT.
    method: String,
    certificates: Option<Vec<Vec<u8>>>,
    is_tls: bool,
    address: IpAddr,
    /// The client's first message, which nobody has looked at yet.
    begun: Option<Vec<u8>>,
    exchange: Option<Box<dyn AuthExchange>>,
}

impl ClientAuthentication {
    /// For a client that has logged in with this method.
    pub(crate) fn new(
        authenticator: Arc<dyn ClientAuthenticator>,
        method: &str,
        login: &BrokerLogin<'_>,
    ) -> Self {
        Self {
            authenticator,
            method: method.to_owned(),
            certificates: login.certificates.map(<[_]>::to_vec),
            is_tls: login.is_tls,
            address: login.address,
            begun: None,
            exchange: None,
        }
    }

    /// Whether a first message waits to be looked at.
    pub(crate) const fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Begins an exchange with the client's first message.
    async fn begin(&mut self, client_id: &str) -> Result<BegunExchange, BrokerRefusal> {
        let message = self.begun.take().unwrap_or_default();
        let login = BrokerLogin {
            client_id,
            username: None,
            password: None,
            certificates: self.certificates.as_deref(),
            is_tls: self.is_tls,
            address: self.address,
        };
        self.authenticator
            .begin_exchange(login, &self.method, &message)
            .await
    }
}

/// Adds an AUTH packet to an output.
pub(crate) fn put_auth(code: ReasonCode, method: &str, data: &[u8], out: &mut Vec<u8>) {
    let mut properties = MqttPropertyBuf::new();
    // Each comes once; what a method says fits.
    let _ = properties.push(MqttProperty::AuthenticationMethod(method));
    let _ = properties.push(MqttProperty::AuthenticationData(data));
    let packet = AuthPacket {
        code,
        properties: properties.as_properties(),
    };
    let _ = packet.encode(MqttProtocolVersion::V5, out);
}

impl BrokerConnection {
    /// Takes an AUTH packet.
    pub(crate) fn on_auth(&mut self, auth: &AuthPacket<'_>) {
        let Some(authentication) = &mut self.authentication else {
            return self.refuse(ReasonCode::ProtocolError, "AUTH without enhanced authentication");
        };
        let properties = &auth.properties;
        if properties.authentication_method() != Some(authentication.method.as_str()) {
            return self.refuse(
                ReasonCode::BadAuthenticationMethod,
                "another authentication method",
            );
        }
        let Some(message) = properties.authentication_data() else {
            return self.refuse(ReasonCode::NotAuthorized, "no authentication data");
        };
        match (auth.code, authentication.exchange.take()) {
            (ReasonCode::ReAuthenticate, _) => authentication.begun = Some(message.to_vec()),
            (ReasonCode::ContinueAuthentication, Some(mut exchange)) => match exchange.receive(message) {
                Ok(AuthStep::Continue(next)) => {
                    put_auth(
                        ReasonCode::ContinueAuthentication,
                        &authentication.method,
                        &next,
                        &mut self.out,
                    );
                    authentication.exchange = Some(exchange);
                }
                Ok(AuthStep::Granted(grant, proof)) => {
                    let problem = not_permitted(grant.rules.as_deref(), &self.open.session.lock());
                    if let Some(problem) = problem {
                        return self.refuse(ReasonCode::NotAuthorized, problem);
                    }
                    self.rules = grant.rules;
                    put_auth(ReasonCode::Success, &authentication.method, &proof, &mut self.out);
                }
                Err(refusal) => self.refuse_by_access(refusal),
            },
            _ => self.refuse(ReasonCode::ProtocolError, "AUTH that answers nothing"),
        }
    }

    /// Looks at the first message of a new exchange, and answers it.
    pub(crate) async fn begin_exchange(&mut self) {
        let session = self.open.session.clone();
        let Some(authentication) = &mut self.authentication else {
            return;
        };
        match authentication.begin(&session.client_id).await {
            Ok((exchange, message)) => {
                authentication.exchange = Some(exchange);
                put_auth(
                    ReasonCode::ContinueAuthentication,
                    &authentication.method,
                    &message,
                    &mut self.out,
                );
            }
            Err(refusal) => self.refuse_by_access(refusal),
        }
    }

    fn refuse_by_access(&mut self, refusal: BrokerRefusal) {
        let Refused(code, text) = match refusal {
            // DISCONNECT knows neither of them (MQTT 5 §3.14.2.1).
            BrokerRefusal::Unavailable => Refused(ReasonCode::ServerBusy, "the credentials cannot be read"),
            BrokerRefusal::Banned => Refused(ReasonCode::NotAuthorized, "the client is blocked"),
            refusal => refused_by_access(refusal),
        };
        self.refuse(code, text);
    }
}

/// What a session has that is not permitted by rules.
fn not_permitted(rules: Option<&dyn TopicRules>, session: &SessionInner) -> Option<&'static str> {
    if !may_have(rules, &session.subscriptions) {
        return Some("a subscription is not permitted any more");
    }
    let (rules, will) = (rules?, session.will.as_ref()?);
    (!rules.may_publish(&will.message.topic)).then_some("the topic of the will is not permitted any more")
}
