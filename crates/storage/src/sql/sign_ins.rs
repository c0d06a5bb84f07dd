//! Sign-ins of people.

use async_trait::async_trait;
use fieldline_core::ports::{SignInOrigin, SignInStore, StoreResult, TokenFamily};
use fieldline_model::UserId;
use uuid::Uuid;

use super::database::{EntityDatabase, SqlTransaction};
use super::query::{SqlArg, SqlQuery, SqlRow, unreadable};
use super::record;
use super::statement_error::StatementError;

const COLUMNS: &str = "session_id, user_id, opened_at, address, browser, os, current_token, replaced, used_at, \
                       access_until, until, ended_at";

/// Sign-ins in a database.
pub(super) struct SqlSignIns(pub(super) EntityDatabase);

/// What a statement about a user says where there is no such user.
fn of_user<T>(done: Result<T, StatementError>) -> StoreResult<T> {
    done.map_err(|failure| match failure {
        StatementError::BrokenReference => record::not_found("User"),
        failure => failure.into_error(),
    })
}

fn replaced(family: &TokenFamily) -> StoreResult<String> {
    serde_json::to_string(&family.replaced).map_err(unreadable)
}

fn read(row: &SqlRow) -> StoreResult<TokenFamily> {
    let mut columns = row.columns();
    let session = columns.next()?;
    let user = UserId(columns.next()?);
    let opened_at = columns.next()?;
    let origin = SignInOrigin {
        address: columns.next()?,
        browser: columns.next()?,
        os: columns.next()?,
    };
    let current = columns.next()?;
    let replaced: String = columns.next()?;
    Ok(TokenFamily {
        session,
        user,
        opened_at,
        origin,
        current,
        replaced: serde_json::from_str(&replaced).map_err(unreadable)?,
        used_at: columns.next()?,
        access_until: columns.next()?,
        until: columns.next()?,
        ended_at: columns.next()?,
    })
}

/// Ends those open families that the condition behind it selects. Neither time becomes shorter, and the family stays as long as
/// its access tokens count.
fn ending(at_ms: i64, access_until: i64) -> SqlQuery {
    SqlQuery::new("UPDATE sign_in SET ended_at = ")
        .bind(at_ms)
        .push(", access_until = CASE WHEN access_until < ")
        .bind(access_until)
        .push(" THEN ")
        .bind(access_until)
        .push(" ELSE access_until END, until = CASE WHEN until < ")
        .bind(access_until)
        .push(" AND access_until < ")
        .bind(access_until)
        .push(" THEN ")
        .bind(access_until)
        .push(" WHEN until < access_until THEN access_until ELSE until END WHERE ended_at IS NULL AND ")
}

/// So many times as many families stay that have ended, while that matters.
const ENDED_FACTOR: i64 = 10;

/// Deletes what a user has beyond the latest.
async fn keep_latest(
    changes: &mut SqlTransaction,
    user: UserId,
    most: u32,
    now_ms: i64,
) -> Result<(), StatementError> {
    let most = i64::from(most);
    let kinds = [
        (" AND (ended_at IS NULL OR access_until <= ", most),
        (
            " AND (ended_at IS NOT NULL AND access_until > ",
            most * ENDED_FACTOR,
        ),
    ];
    for (kind, most) in kinds {
        let query = SqlQuery::new(
            "DELETE FROM sign_in WHERE session_id IN (SELECT session_id FROM sign_in WHERE user_id = ",
        )
        .bind(user.0)
        .push(kind)
        .bind(now_ms)
        .push(") ORDER BY used_at DESC, session_id DESC LIMIT ")
        .bind(i64::from(u32::MAX))
        .push(" OFFSET ")
        .bind(most)
        .push(")");
        changes.execute(query).await?;
    }
    Ok(())
}

#[async_trait]
impl SignInStore for SqlSignIns {
    async fn open(&self, family: &TokenFamily, most: u32) -> StoreResult<()> {
        let query = SqlQuery::new("INSERT INTO sign_in (")
            .push(COLUMNS)
            .push(") VALUES (")
            .bind_list([
                SqlArg::from(family.session),
                family.user.0.into(),
                family.opened_at.into(),
                family.origin.address.clone().into(),
                family.origin.browser.clone().into(),
                family.origin.os.clone().into(),
                family.current.into(),
                replaced(family)?.into(),
                family.used_at.into(),
                family.access_until.into(),
                family.until.into(),
                family.ended_at.into(),
            ])
            .push(
                ") ON CONFLICT (session_id) DO UPDATE SET user_id = excluded.user_id, \
                 opened_at = excluded.opened_at, address = excluded.address, browser = excluded.browser, \
                 os = excluded.os, current_token = excluded.current_token, replaced = excluded.replaced, \
                 used_at = excluded.used_at, access_until = excluded.access_until, until = excluded.until, \
                 ended_at = COALESCE(sign_in.ended_at, excluded.ended_at)",
            );
        let mut changes = self.0.begin().await?;
        of_user(changes.execute(query).await)?;
        keep_latest(&mut changes, family.user, most, family.used_at).await?;
        Ok(changes.commit().await?)
    }

    async fn family(&self, session: Uuid) -> StoreResult<Option<TokenFamily>> {
        let query = SqlQuery::new("SELECT ")
            .push(COLUMNS)
            .push(" FROM sign_in WHERE session_id = ")
            .bind(session);
        self.0.read(query).await?.first().map(read).transpose()
    }

    async fn of_user(&self, user: UserId, now_ms: i64, limit: u32) -> StoreResult<Vec<TokenFamily>> {
        let query = SqlQuery::new("SELECT ")
            .push(COLUMNS)
            .push(" FROM sign_in WHERE user_id = ")
            .bind(user.0)
            .push(" AND ended_at IS NULL AND until > ")
            .bind(now_ms)
            .push(" ORDER BY used_at DESC, session_id DESC LIMIT ")
            .bind(i64::from(limit));
        self.0.read(query).await?.iter().map(read).collect()
    }

    async fn rotate(&self, family: &TokenFamily, current: Uuid) -> StoreResult<bool> {
        let query = SqlQuery::new("UPDATE sign_in SET current_token = ")
            .bind(family.current)
            .push(", replaced = ")
            .bind(replaced(family)?)
            .push(", used_at = ")
            .bind(family.used_at)
            .push(", access_until = ")
            .bind(family.access_until)
            .push(", until = ")
            .bind(family.until)
            .push(" WHERE ended_at IS NULL AND session_id = ")
            .bind(family.session)
            .push(" AND current_token = ")
            .bind(current);
        Ok(self.0.execute(query).await? > 0)
    }

    async fn end(&self, session: Uuid, at_ms: i64, access_until: i64) -> StoreResult<bool> {
        let query = ending(at_ms, access_until).push("session_id = ").bind(session);
        Ok(self.0.execute(query).await? > 0)
    }

    async fn end_others(
        &self,
        user: UserId,
        kept: Uuid,
        at_ms: i64,
        access_until: i64,
    ) -> StoreResult<Vec<Uuid>> {
        let query = ending(at_ms, access_until)
            .push("user_id = ")
            .bind(user.0)
            .push(" AND session_id <> ")
            .bind(kept)
            .push(" RETURNING session_id");
        let rows = self.0.write(query).await?;
        rows.iter().map(|row| row.columns().next()).collect()
    }

    async fn ended(&self, now_ms: i64, limit: u32) -> StoreResult<Vec<(Uuid, i64)>> {
        let query = SqlQuery::new(
            "SELECT session_id, ended_at FROM sign_in WHERE ended_at IS NOT NULL AND access_until > ",
        )
        .bind(now_ms)
        .push(" ORDER BY ended_at DESC LIMIT ")
        .bind(i64::from(limit));
        let rows = self.0.read(query).await?;
        rows.iter()
            .map(|row| {
                let mut columns = row.columns();
                Ok((columns.next()?, columns.next()?))
            })
            .collect()
    }

    async fn purge(&self, now_ms: i64, sources_since_ms: i64) -> StoreResult<u64> {
        let families = SqlQuery::new("DELETE FROM sign_in WHERE until <= ").bind(now_ms);
        let sources = SqlQuery::new("DELETE FROM sign_in_source WHERE used_at < ").bind(sources_since_ms);
        Ok(self.0.execute(families).await? + self.0.execute(sources).await?)
    }

    async fn sources(&self, user: UserId) -> StoreResult<Vec<String>> {
        let query = SqlQuery::new("SELECT source FROM sign_in_source WHERE user_id = ")
            .bind(user.0)
            .push(" ORDER BY used_at, source");
        let rows = self.0.read(query).await?;
        rows.iter().map(|row| row.columns().next()).collect()
    }

    async fn note_source(&self, user: UserId, source: &str, at_ms: i64, most: u32) -> StoreResult<()> {
        let noted = SqlQuery::new("INSERT INTO sign_in_source (user_id, source, used_at) VALUES (")
            .bind(user.0)
            .push(", ")
            .bind(record::bounded("source", source)?)
            .push(", ")
            .bind(at_ms)
            .push(") ON CONFLICT (user_id, source) DO UPDATE SET used_at = excluded.used_at");
        let kept = SqlQuery::new("DELETE FROM sign_in_source WHERE user_id = ")
            .bind(user.0)
            .push(" AND source NOT IN (SELECT source FROM sign_in_source WHERE user_id = ")
            .bind(user.0)
            .push(" ORDER BY used_at DESC, source LIMIT ")
            .bind(i64::from(most))
            .push(")");
        let mut changes = self.0.begin().await?;
        of_user(changes.execute(noted).await)?;
        changes.execute(kept).await?;
        Ok(changes.commit().await?)
    }

    async fn forget_sources(&self, user: UserId) -> StoreResult<()> {
        let query = SqlQuery::new("DELETE FROM sign_in_source WHERE user_id = ").bind(user.0);
        self.0.execute(query).await?;
        Ok(())
    }
}
