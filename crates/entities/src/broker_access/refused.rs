//! What administrators see and change of clients that may not connect: blocks, and who was refused.

use std::net::IpAddr;

use fieldline_model::entity::{BlockedClient, BlockedClientType, RegexMatchTarget, UnauthorizedClient};
use fieldline_model::page::{PageData, PageLink};

use super::BrokerAccessService;
use super::patterns::{MAX_EXPRESSION, WholePattern};
use super::service::{contains, not_found, page_of};
use crate::services::{ServiceError, ServiceResult};

/// Most blocks that are stored.
pub(super) const MOST_BLOCKED: u32 = 10_000;
/// Most of them that are regular expressions: each log-in asks all of them.
const MOST_BLOCKED_PATTERNS: usize = 200;
/// How long a block that has expired is shown before it is deleted, minutes.
pub const BLOCKED_KEPT_MINUTES: i64 = 10_080;
const BLOCKED_KEPT_MS: i64 = BLOCKED_KEPT_MINUTES * 60_000;
/// Longest text of a block, in characters.
const MAX_TEXT: usize = 255;

/// Whether a block counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockedClientStatus {
    /// It counts.
    Active,
    /// It has expired.
    Expired,
    /// It has expired long ago.
    DeletingSoon,
}

impl BlockedClientStatus {
    /// The status of a block at a time, milliseconds.
    pub const fn of(client: &BlockedClient, now_ms: i64) -> Self {
        if !client.is_expired(now_ms) {
            Self::Active
        } else if now_ms - client.expiration_time >= BLOCKED_KEPT_MS / 2 {
            Self::DeletingSoon
        } else {
            Self::Expired
        }
    }

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::Expired => "EXPIRED",
            Self::DeletingSoon => "DELETING_SOON",
        }
    }
}

impl BrokerAccessService {
    /// Blocks clients from now on. Those that are connected stay.
    ///
    /// # Errors
    /// A rule is broken, or they are blocked already.
    pub async fn block(&self, mut client: BlockedClient) -> ServiceResult<BlockedClient> {
        check_block(&client)?;
        client.value = block_value(client.kind, &client.value)?;
        let state = &self.0;
        let clients = &state.context.stores.mqtt_clients;
        clients.forget_blocked(state.now() - BLOCKED_KEPT_MS).await?;
        let stored = clients.blocked(MOST_BLOCKED).await?;
        let patterns = stored
            .iter()
            .filter(|stored| stored.kind == BlockedClientType::Regex)
            .count();
        if client.kind == BlockedClientType::Regex && patterns >= MOST_BLOCKED_PATTERNS {
            return Err(ServiceError::invalid(format!(
                "No more than {MOST_BLOCKED_PATTERNS} regular expressions of blocked clients are allowed!"
            )));
        }
        if stored.len() >= MOST_BLOCKED as usize {
            return Err(ServiceError::invalid(format!(
                "No more than {MOST_BLOCKED} blocked clients are allowed!"
            )));
        }
        let blocked = clients.block(&client).await;
        state.cache.forget_blocked();
        blocked?;
        Ok(client)
    }

    /// Ends a block.
    ///
    /// # Errors
    /// There is none, its address is none, or the store failed.
    pub async fn unblock(
        &self,
        kind: BlockedClientType,
        value: &str,
        target: Option<RegexMatchTarget>,
    ) -> ServiceResult<()> {
        let state = &self.0;
        let clients = &state.context.stores.mqtt_clients;
        let value = block_value(kind, value)?;
        let ended = clients.unblock(kind, &value, target).await;
        state.cache.forget_blocked();
        match ended? {
            true => Ok(()),
            false => Err(not_found()),
        }
    }

    /// A page of the blocks that `filter` chooses, each with its status; text search in the value.
    ///
    /// # Errors
    /// The page is none, or the store failed.
    pub async fn blocked(
        &self,
        page: &PageLink,
        filter: impl Fn(&BlockedClient) -> bool + Send,
    ) -> ServiceResult<PageData<(BlockedClient, BlockedClientStatus)>> {
        let state = &self.0;
        let now = state.now();
        let stored = state.context.stores.mqtt_clients.blocked(MOST_BLOCKED).await?;
        let text = page.text_search.as_deref();
        let chosen = stored
            .into_iter()
            .filter(|client| !client.is_expired(now) || now - client.expiration_time < BLOCKED_KEPT_MS)
            .filter(|client| text.is_none_or(|text| contains(&client.value, text)))
            .filter(&filter)
            .map(|client| {
                let status = BlockedClientStatus::of(&client, now);
                (client, status)
            });
        page_of(
            chosen.collect(),
            page,
            |property, (a, a_status), (b, b_status)| {
                // What never expires comes last.
                let until = |client: &BlockedClient| match client.expiration_time {
                    0 => i64::MAX,
                    until => until,
                };
                Some(match property {
                    "type" => a.kind.cmp(&b.kind),
                    "expirationTime" => until(a).cmp(&until(b)),
                    "status" => a_status.cmp(b_status),
                    "description" => a.description.cmp(&b.description),
                    "value" => a.value.cmp(&b.value),
                    "regexMatchTarget" => a.target.cmp(&b.target),
                    _ => return None,
                })
            },
        )
    }

    /// The status of a block that was saved just now.
    pub fn status_of(&self, client: &BlockedClient) -> BlockedClientStatus {
        BlockedClientStatus::of(client, self.0.now())
    }

    /// A page of the clients that were refused last, of those that `filter` chooses; text search in the identifier.
    ///
    /// # Errors
    /// The page is none.
    pub fn unauthorized(
        &self,
        page: &PageLink,
        filter: impl Fn(&UnauthorizedClient) -> bool,
    ) -> ServiceResult<PageData<UnauthorizedClient>> {
        let text = page.text_search.as_deref();
        let all = self.0.unauthorized.all(self.0.now());
        let chosen = all
            .into_iter()
            .filter(|client| text.is_none_or(|text| contains(&client.client_id, text)))
            .filter(&filter);
        page_of(chosen.collect(), page, |property, a, b| {
            Some(match property {
                "clientId" => a.client_id.cmp(&b.client_id),
                "ipAddress" => a.ip_address.cmp(&b.ip_address),
                "ts" => a.ts.cmp(&b.ts),
                "username" => a.username.cmp(&b.username),
                "passwordProvided" => a.password_provided.cmp(&b.password_provided),
                "tlsUsed" => a.tls_used.cmp(&b.tls_used),
                "reason" => a.reason.cmp(&b.reason),
                _ => return None,
            })
        })
    }

    /// One client that was refused.
    ///
    /// # Errors
    /// It was not.
    pub fn unauthorized_client(&self, client_id: &str) -> ServiceResult<UnauthorizedClient> {
        let all = self.0.unauthorized.all(self.0.now());
        let found = all.into_iter().find(|client| client.client_id == client_id);
        found.ok_or_else(not_found)
    }

    /// Forgets a client that was refused, or all of them.
    ///
    /// # Errors
    /// That one was not refused.
    pub fn forget_unauthorized(&self, client_id: Option<&str>) -> ServiceResult<()> {
        match client_id {
            Some(id) if !self.0.unauthorized.forget(id) => Err(not_found()),
            Some(_) => Ok(()),
            None => {
                self.0.unauthorized.clear();
                Ok(())
            }
        }
    }
}

/// The value of a block as clients are compared with it: an address has many spellings.
fn block_value(kind: BlockedClientType, value: &str) -> ServiceResult<String> {
    if kind != BlockedClientType::IpAddress {
        return Ok(value.to_owned());
    }
    let address: Result<IpAddr, _> = value.trim().parse();
    address
        .map(|address| address.to_canonical().to_string())
        .map_err(|_| ServiceError::invalid("Blocked client value should be an IP address"))
}

fn check_block(client: &BlockedClient) -> ServiceResult<()> {
    let invalid = |message: String| Err(ServiceError::invalid(message));
    if client.value.is_empty() {
        return invalid("Blocked client value should be specified".to_owned());
    }
    let description = client.description.as_deref().unwrap_or_default();
    for (name, text) in [("value", client.value.as_str()), ("description", description)] {
        if text.chars().count() > MAX_TEXT || text.contains('\0') {
            return invalid(format!(
                "Validation error: {name} length must be equal or less than {MAX_TEXT}"
            ));
        }
    }
    if client.expiration_time < 0 {
        return invalid("Validation error: expirationTime must not be negative".to_owned());
    }
    match (client.kind, client.target) {
        (BlockedClientType::Regex, None) => {
            invalid("Blocked client regex match target should be specified for REGEX type".to_owned())
        }
        (BlockedClientType::Regex, Some(_)) => {
            let is_valid = client.value.len() <= MAX_EXPRESSION && WholePattern::new(&client.value).is_ok();
            match is_valid {
                true => Ok(()),
                false => invalid(format!("Invalid regex pattern: {}", client.value)),
            }
        }
        _ => Ok(()),
    }
}
