//! A client of the REST API, to administer devices and read telemetry.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::HeaderValue;
use ureq::http::header::CONTENT_TYPE;

use crate::error::{LoadError, LoadResult};

use self::exchange::{RestClientMethod, RestClientRequest, RestClientResponse};
pub(crate) use self::exchange::{agent, base_url, connection_error, message_of};

mod exchange;

const LOGIN: &str = "/api/auth/login";

/// Timeout of a whole request; a page of devices takes long on a server under load.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Entities per page.
const PAGE_SIZE: usize = 1_000;

/// Most pages of a list, in case a server never ends it.
const MAX_PAGES: usize = 10_000;

/// The first and the longest pause between attempts while a server is starting.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The server, and the user to log in as.
#[derive(Clone)]
pub struct RestTarget {
    /// Scheme, host and port, for example `http://127.0.0.1:8080`.
    pub url: String,
    /// E-mail address of a tenant administrator.
    pub username: String,
    /// The password.
    pub password: String,
    /// Connections kept open between requests, one for each thread that uses the client.
    pub pool_size: usize,
}

impl fmt::Debug for RestTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestTarget")
            .field("url", &self.url)
            .field("username", &self.username)
            .field("pool_size", &self.pool_size)
            .finish_non_exhaustive()
    }
}

/// Sends requests as one user; clones share connections and log-in.
#[derive(Clone)]
pub struct RestClient(Arc<RestClientShared>);

struct RestClientShared {
    agent: Agent,
    target: RestTarget,
    login: Mutex<RestLoginState>,
}

/// The log-in state of a client.
#[derive(Clone)]
enum RestLoginState {
    /// Not logged in yet.
    None,
    /// Logged in; the value of the authorization header.
    Accepted(HeaderValue),
    /// The server has refused the user, with this status and message. Repeated attempts would lock the user out.
    Refused(u16, String),
}

impl fmt::Debug for RestClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RestClient").field(&self.0.target).finish()
    }
}

impl RestClient {
    /// Creates a client that logs in with its first request.
    ///
    /// # Errors
    /// The address is not that of an HTTP server.
    pub fn new(target: RestTarget) -> LoadResult<Self> {
        Self::with_timeout(target, REQUEST_TIMEOUT)
    }

    /// Like [`new`](Self::new), with another timeout of a whole request.
    ///
    /// # Errors
    /// The address is not that of an HTTP server.
    pub fn with_timeout(target: RestTarget, timeout: Duration) -> LoadResult<Self> {
        let url = base_url(&target.url)?;
        Ok(Self(Arc::new(RestClientShared {
            agent: agent(target.pool_size, timeout),
            target: RestTarget { url, ..target },
            login: Mutex::new(RestLoginState::None),
        })))
    }

    /// Scheme, host, port and path of the server, without a trailing slash.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.0.target.url
    }

    /// Logs in again, and waits up to `patience` for a server that is still starting: one that refuses or drops
    /// connections, or whose proxy answers that there is no server behind it.
    ///
    /// # Errors
    /// The server did not start in time, or refuses the log-in.
    pub fn wait_until_up(&self, patience: Duration) -> LoadResult<()> {
        let stale = match &*self.login() {
            RestLoginState::Accepted(header) => Some(header.clone()),
            _ => None,
        };
        let begin = Instant::now();
        let mut wait = FIRST_WAIT;
        loop {
            match self.authorization(stale.as_ref()) {
                Err(error) if is_starting(&error) && begin.elapsed() < patience => {
                    thread::sleep(wait.min(patience.saturating_sub(begin.elapsed())));
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
                result => return result.map(|_| ()),
            }
        }
    }

    /// Sends a GET.
    ///
    /// # Errors
    /// The server is out of reach, refuses the request, or answers with something other than JSON.
    pub fn get(&self, path: &str, query: &[(&str, &str)]) -> LoadResult<Value> {
        self.call(RestClientRequest {
            method: RestClientMethod::Get,
            path,
            query,
        })
    }

    /// Sends a GET; `None` if the server answers 404.
    ///
    /// # Errors
    /// As for [`get`](Self::get), except for 404.
    pub fn get_optional(&self, path: &str, query: &[(&str, &str)]) -> LoadResult<Option<Value>> {
        match self.get(path, query) {
            Err(LoadError::Refused { status: 404, .. }) => Ok(None),
            result => result.map(Some),
        }
    }

    /// Sends a POST; the result is `null` if the response is empty.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn post(&self, path: &str, query: &[(&str, &str)], body: &Value) -> LoadResult<Value> {
        self.call(RestClientRequest {
            method: RestClientMethod::Post(body),
            path,
            query,
        })
    }

    /// Sends a DELETE.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn delete(&self, path: &str) -> LoadResult<()> {
        self.call(RestClientRequest {
            method: RestClientMethod::Delete,
            path,
            query: &[],
        })
        .map(|_| ())
    }

    /// Sends a DELETE with a query.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn delete_with(&self, path: &str, query: &[(&str, &str)]) -> LoadResult<()> {
        self.call(RestClientRequest {
            method: RestClientMethod::Delete,
            path,
            query,
        })
        .map(|_| ())
    }

    /// Passes the pages of a list, ordered by name and filtered by text, to `visit`, with the number of entities in the
    /// list, until there are no more or `visit` returns false.
    pub(crate) fn read_pages(
        &self,
        path: &str,
        text: &str,
        mut visit: impl FnMut(&[Value], usize) -> bool,
    ) -> LoadResult<()> {
        let page_size = PAGE_SIZE.to_string();
        for page in 0..MAX_PAGES {
            let query = [
                ("pageSize", page_size.as_str()),
                ("page", &page.to_string()),
                ("textSearch", text),
                // In order of creation, pages would shift while other clients create entities.
                ("sortProperty", "name"),
                ("sortOrder", "ASC"),
            ];
            let answer = self.get(path, &query)?;
            let data = answer["data"].as_array().ok_or_else(|| LoadError::BadAnswer {
                method: "GET",
                path: path.to_owned(),
                reason: "it is not a page".to_owned(),
            })?;
            let total = answer["totalElements"].as_u64().unwrap_or(0);
            let goes_on = visit(data, usize::try_from(total).unwrap_or(usize::MAX));
            if !goes_on || data.is_empty() || answer["hasNext"] != true {
                break;
            }
        }
        Ok(())
    }

    /// Sends a request as the user; logs in again, once, if the log-in has expired.
    fn call(&self, call: RestClientRequest<'_>) -> LoadResult<Value> {
        let authorization = self.authorization(None)?;
        let mut answer = self.exchange(call, Some(&authorization))?;
        if answer.status == 401 {
            let fresh = self.authorization(Some(&authorization))?;
            answer = self.exchange(call, Some(&fresh))?;
        }
        answer.into_value(call)
    }

    fn login(&self) -> MutexGuard<'_, RestLoginState> {
        self.0.login.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the authorization header. Logs in if there is no header yet, or if it is the one that was `refused`: of
    /// many threads that are refused at once, one logs in while the others wait for it.
    fn authorization(&self, refused: Option<&HeaderValue>) -> LoadResult<HeaderValue> {
        let mut login = self.login();
        match &*login {
            RestLoginState::Accepted(header) if Some(header) != refused => return Ok(header.clone()),
            RestLoginState::Refused(status, message) => {
                return Err(LoadError::Refused {
                    method: "POST",
                    path: LOGIN.to_owned(),
                    status: *status,
                    message: message.clone(),
                });
            }
            RestLoginState::Accepted(_) | RestLoginState::None => {}
        }
        let result = self.log_in();
        *login = match &result {
            Ok(header) => RestLoginState::Accepted(header.clone()),
            Err(LoadError::Refused { status, message, .. }) if matches!(status, 401 | 403) => {
                RestLoginState::Refused(*status, message.clone())
            }
            Err(_) => RestLoginState::None,
        };
        result
    }

    fn log_in(&self) -> LoadResult<HeaderValue> {
        let RestTarget {
            username, password, ..
        } = &self.0.target;
        let call = RestClientRequest {
            method: RestClientMethod::Post(&json!({"username": username, "password": password})),
            path: LOGIN,
            query: &[],
        };
        let answer = self.exchange(call, None)?.into_value(call)?;
        let token = answer["token"]
            .as_str()
            .ok_or_else(|| call.bad_answer("there is no token in it"))?;
        let mut header = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| call.bad_answer("its token cannot be sent in a header"))?;
        header.set_sensitive(true);
        Ok(header)
    }

    fn exchange(
        &self,
        call: RestClientRequest<'_>,
        authorization: Option<&HeaderValue>,
    ) -> LoadResult<RestClientResponse> {
        let RestClientShared { agent, target, .. } = &*self.0;
        let url = format!("{}{}", target.url, call.path_and_query());
        let result = match call.method {
            RestClientMethod::Get => authorized(agent.get(&url), authorization).call(),
            RestClientMethod::Delete => authorized(agent.delete(&url), authorization).call(),
            RestClientMethod::Post(body) => authorized(agent.post(&url), authorization)
                .header(CONTENT_TYPE, "application/json")
                .send(body.to_string()),
        };
        result
            .and_then(RestClientResponse::read)
            .map_err(|error| self.failure(call, error))
    }

    fn failure(&self, call: RestClientRequest<'_>, error: ureq::Error) -> LoadError {
        match connection_error(error) {
            Ok(error) => LoadError::Unreachable {
                url: self.url().to_owned(),
                error,
            },
            Err(error) => call.bad_answer(error.to_string()),
        }
    }
}

fn authorized<B>(
    request: ureq::RequestBuilder<B>,
    authorization: Option<&HeaderValue>,
) -> ureq::RequestBuilder<B> {
    match authorization {
        Some(header) => request.header("X-Authorization", header),
        None => request,
    }
}

/// Whether an error looks like that of a starting server.
fn is_starting(error: &LoadError) -> bool {
    match error {
        LoadError::Unreachable { error, .. } => matches!(
            error.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof
        ),
        LoadError::Refused { status, .. } => matches!(status, 502..=504),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_shown_without_its_password() {
        let target = RestTarget {
            url: "http://localhost".to_owned(),
            username: "me".to_owned(),
            password: "secret".to_owned(),
            pool_size: 1,
        };
        let shown = format!("{target:?} {:?}", RestClient::new(target.clone()).unwrap());
        assert!(shown.contains("me") && !shown.contains("secret"), "{shown}");
    }
}
