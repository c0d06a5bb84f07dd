//! The enhanced authentication of MQTT 5 (§4.12): a client and the broker exchange messages before the client is let in, or while it
//! is connected.

use fieldline_core::ports::{BrokerRefusal, ClientGrant};
use fieldline_model::entity::UnauthorizedClient;

use super::login::{BLOCKED, ClientLogin, NO_CERTIFICATE, unavailable};
use super::prepared::PreparedKind;
use super::scram::{ClientFirst, REFUSED, ScramAlgorithm, ScramChallenge};
use super::values::{is_storable, scram_id};
use super::{AccessState, BrokerAccessService};

/// A client that has to prove that it knows a password.
pub struct ScramExchange {
    service: BrokerAccessService,
    challenge: ScramChallenge,
    grant: ClientGrant,
    /// What is remembered of the client if it proves nothing.
    refused: UnauthorizedClient,
}

impl BrokerAccessService {
    /// Begins the exchange of an authentication method with the first message of a client; returns the message to send as well.
    ///
    /// # Errors
    /// The method is unknown, or the client is refused, which is remembered.
    pub async fn begin_exchange(
        &self,
        login: ClientLogin<'_>,
        method: &str,
        message: &[u8],
    ) -> Result<(ScramExchange, Vec<u8>), BrokerRefusal> {
        let state = &self.0;
        if state
            .is_blocked(&login)
            .await
            .map_err(|error| unavailable(&error))?
        {
            state.unauthorized.note(state.refused(&login, BLOCKED.to_owned()));
            return Err(BrokerRefusal::Banned);
        }
        let refuse = |login: &ClientLogin<'_>, reason: &str| {
            let reason = format!("SCRAM authentication failed: {reason}");
            state.unauthorized.note(UnauthorizedClient {
                password_provided: true,
                ..state.refused(login, reason)
            });
            REFUSED
        };
        let Some(algorithm) = ScramAlgorithm::of_method(method) else {
            let reason = "The authentication method is unknown".to_owned();
            state.unauthorized.note(state.refused(&login, reason));
            return Err(BrokerRefusal::UnknownMethod);
        };
        let providers = state
            .auth_providers()
            .await
            .map_err(|error| unavailable(&error))?;
        if !providers.settings.scram.enabled {
            return Err(refuse(&login, "it is disabled"));
        }
        if providers.misses_certificate(&login) {
            state
                .unauthorized
                .note(state.refused(&login, NO_CERTIFICATE.to_owned()));
            return Err(REFUSED);
        }
        let Some(first) = ClientFirst::parse(message) else {
            return Err(refuse(&login, "the first message cannot be read"));
        };
        let login = ClientLogin {
            username: Some(&first.user_name),
            ..login
        };
        // A block of the name counts once it is known.
        if state
            .is_blocked(&login)
            .await
            .map_err(|error| unavailable(&error))?
        {
            state.unauthorized.note(state.refused(&login, BLOCKED.to_owned()));
            return Err(BrokerRefusal::Banned);
        }
        let found = state.scram_credentials(&first.user_name).await;
        let found = found.map_err(|error| unavailable(&error))?;
        let Some((keys, grant)) = found.filter(|(keys, _)| keys.algorithm == algorithm) else {
            return Err(refuse(
                &login,
                "no credentials found for the user name and the method",
            ));
        };
        let (challenge, answer) = ScramChallenge::new(&first, keys);
        let exchange = ScramExchange {
            service: self.clone(),
            challenge,
            grant,
            refused: UnauthorizedClient {
                password_provided: true,
                ..state.refused(
                    &login,
                    "SCRAM authentication failed: the proof is wrong".to_owned(),
                )
            },
        };
        Ok((exchange, answer))
    }
}

impl ScramExchange {
    /// Ends the exchange with the last message of the client; returns what it may do, and the message to send.
    ///
    /// # Errors
    /// The client has proven nothing, which is remembered.
    pub fn finish(self, message: &[u8]) -> Result<(ClientGrant, Vec<u8>), BrokerRefusal> {
        let unauthorized = &self.service.0.unauthorized;
        match self.challenge.finish(message) {
            Ok(answer) => {
                unauthorized.forget(&self.refused.client_id);
                Ok((self.grant, answer))
            }
            Err(refusal) => {
                unauthorized.note(self.refused);
                Err(refusal)
            }
        }
    }
}

impl AccessState {
    /// The keys of a user's password, and what the user may do.
    async fn scram_credentials(
        &self,
        user_name: &str,
    ) -> fieldline_core::ports::StoreResult<Option<(super::scram::ScramKeys, ClientGrant)>> {
        if !is_storable(user_name) {
            return Ok(None);
        }
        let found = self.credentials(&[scram_id(user_name)]).await?;
        Ok(found.first().and_then(|credentials| match &credentials.kind {
            PreparedKind::Scram { keys, rules } => {
                let grant = ClientGrant {
                    client_type: credentials.stored.client_type.into(),
                    rules: Some(rules.clone()),
                };
                Some((keys.clone(), grant))
            }
            _ => None,
        }))
    }
}
