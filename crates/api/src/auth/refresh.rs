//! Token refresh: each refresh token can be used once. Using one again ends its session, because a second party must
//! have got hold of it.

use std::sync::Arc;

use fieldline_core::ports::{StoreErrorKind, TokenFamily};
use uuid::Uuid;

use super::sessions::{LoginSessions, TokenUser};
use super::token_families::{GRACE_MS, replaced_by};
use super::tokens::{RefreshTokenIdentity, TokenIds, TokenIssuer, TokenPair, TokenTimes, outdated};
use crate::error::{ApiError, ApiResult, ErrorCode};

/// Most attempts if other requests replace the token at the same time.
const MAX_REFRESH_ATTEMPTS: usize = 4;

/// The outcome of a refresh.
pub(crate) enum RefreshOutcome {
    /// The new pair of tokens.
    Bought(TokenPair),
    /// The token was used again long after it was replaced, so the session of this user has ended.
    Reused(Arc<TokenUser>),
}

/// The status of a refresh token within its family.
#[derive(Debug, PartialEq, Eq)]
enum RefreshTokenStatus {
    /// The token to replace with the next one.
    Current,
    /// Replaced just now by a concurrent request: its replacement is the current one.
    JustReplaced,
    /// Replaced before that.
    Used,
}

fn token_status(family: &TokenFamily, token: Uuid, now_ms: i64) -> RefreshTokenStatus {
    if family.current == token {
        return RefreshTokenStatus::Current;
    }
    let replaced = family.replaced.iter().find(|(replaced, _)| *replaced == token);
    // If the clock was set back, a replaced token does not count as stolen.
    match replaced {
        Some((_, at)) if now_ms - at < GRACE_MS => RefreshTokenStatus::JustReplaced,
        _ => RefreshTokenStatus::Used,
    }
}

/// Returns the family after its current token was replaced by another one.
fn renewed(family: &TokenFamily, token: Uuid, now_ms: i64) -> TokenFamily {
    TokenFamily {
        current: token,
        replaced: replaced_by(family, now_ms),
        used_at: now_ms,
        ..family.clone()
    }
}

impl LoginSessions {
    /// Exchanges a refresh token for a new pair.
    ///
    /// # Errors
    /// The token is no longer valid, or the store failed.
    pub(crate) async fn refresh(
        &self,
        tokens: &TokenIssuer,
        shown: RefreshTokenIdentity,
    ) -> ApiResult<RefreshOutcome> {
        let RefreshTokenIdentity {
            identity: ticket,
            token,
        } = shown;
        let known = self.authenticate(ticket).await?;
        let now = self.clock.now_ms();
        let times = TokenTimes {
            now_ms: now,
            valid_from_ms: known.tokens_valid_from,
        };
        let session = ticket.session;
        let issue = |token| tokens.issue(&known.user, TokenIds { session, token }, times);
        if ticket.public {
            return Ok(RefreshOutcome::Bought(issue(Uuid::new_v4())?.pair));
        }
        let store = &self.families.store;
        for _ in 0..MAX_REFRESH_ATTEMPTS {
            let family = store.family(ticket.session).await?;
            let family = family.filter(|family| family.ended_at.is_none() && family.user == ticket.user);
            let family = family.ok_or_else(outdated)?;
            match token_status(&family, token, now) {
                RefreshTokenStatus::Current => {}
                RefreshTokenStatus::JustReplaced => {
                    return Ok(RefreshOutcome::Bought(issue(family.current)?.pair));
                }
                RefreshTokenStatus::Used => {
                    self.log_out(tokens, ticket).await?;
                    return Ok(RefreshOutcome::Reused(known));
                }
            }
            let next = Uuid::new_v4();
            let issued = issue(next)?;
            let family = TokenFamily {
                used_at: times.issued_ms(),
                access_until: issued.access_until.saturating_add(GRACE_MS),
                until: issued.until.saturating_add(GRACE_MS),
                ..renewed(&family, next, now)
            };
            match store.rotate(&family, token).await {
                Ok(true) => return Ok(RefreshOutcome::Bought(issued.pair)),
                Ok(false) => {}
                // If the store cannot write, the session keeps the token that it has.
                Err(error) if error.kind() == StoreErrorKind::DiskFull => {
                    return Ok(RefreshOutcome::Bought(issue(token)?.pair));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(ApiError::new(
            ErrorCode::TooManyRequests,
            "The session is refreshed by too many at once!",
        ))
    }
}

#[cfg(test)]
mod tests {
    use fieldline_core::ports::SignInOrigin;
    use fieldline_model::UserId;

    use super::super::token_families::REPLACED_TOKENS;
    use super::*;

    fn token(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn family() -> TokenFamily {
        TokenFamily {
            session: token(100),
            user: UserId(token(101)),
            opened_at: None,
            origin: SignInOrigin::default(),
            current: token(0),
            replaced: Vec::new(),
            used_at: 0,
            access_until: 0,
            until: 0,
            ended_at: None,
        }
    }

    #[test]
    fn a_token_that_was_replaced_counts_for_a_moment() {
        let family = renewed(&renewed(&family(), token(1), 1_000), token(2), 2_000);
        let standing = |number, now| token_status(&family, token(number), now);
        assert_eq!(standing(2, 9_000_000), RefreshTokenStatus::Current);
        assert_eq!(
            standing(1, 2_000 + GRACE_MS - 1),
            RefreshTokenStatus::JustReplaced
        );
        assert_eq!(standing(1, 2_000 + GRACE_MS), RefreshTokenStatus::Used);
        assert_eq!(
            standing(0, 1_000 + GRACE_MS - 1),
            RefreshTokenStatus::JustReplaced
        );
        assert_eq!(standing(0, 1_000 + GRACE_MS), RefreshTokenStatus::Used);
        assert_eq!(
            standing(0, 0),
            RefreshTokenStatus::JustReplaced,
            "the clock was set back"
        );
        assert_eq!(standing(7, 2_000), RefreshTokenStatus::Used, "nobody knows it");
    }

    #[test]
    fn few_replaced_tokens_are_remembered() {
        let mut family = family();
        for number in 1..100 {
            family = renewed(&family, token(number), 5);
        }
        assert_eq!(family.replaced.len(), REPLACED_TOKENS);
        assert_eq!(family.replaced.last(), Some(&(token(98), 5)));
        let later = renewed(&family, token(100), 5 + GRACE_MS);
        assert_eq!(later.replaced, [(token(99), 5 + GRACE_MS)]);
    }
}
