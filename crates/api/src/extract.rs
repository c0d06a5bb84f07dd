//! Extractors that parse requests, and refuse malformed ones with the error body of the API.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::convert::Infallible;
use std::str::FromStr;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use fieldline_model::page::{PageLink, SortOrder};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize as _, Deserializer};
use uuid::Uuid;

use crate::error::{ApiError, ErrorCode};

/// The JSON body of a request. Unknown fields are ignored.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        check_content_type(request.headers())?;
        let bytes = body_bytes(request, state).await?;
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| ApiError::bad_request(format!("JSON parse error: {error}")))
    }
}

/// Reads the body of a request, within the body limit.
pub(crate) async fn body_bytes<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    Bytes::from_request(request, state).await.map_err(|rejection| {
        let status = rejection.status();
        ApiError::with_status(status, ErrorCode::BadRequestParams, rejection.body_text())
    })
}

fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let text = value.to_str().unwrap_or_default();
    let kind = text.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") || kind.to_ascii_lowercase().ends_with("+json") {
        return Ok(());
    }
    Err(ApiError::with_status(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::BadRequestParams,
        format!("Content-Type '{text}' is not supported."),
    ))
}

/// The query parameters of a request. A parameter that is repeated becomes one list, as if its values were joined by
/// commas. Empty values count as absent for fields that are an `Option` of a number or a flag.
pub(crate) struct QueryParams<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let uri = lists_joined(&parts.uri)?;
        axum::extract::Query::try_from_uri(&uri)
            .map(|axum::extract::Query(query)| Self(query))
            .map_err(|rejection| ApiError::bad_request(rejection.body_text()))
    }
}

/// The raw names and values of a query.
pub(crate) struct QueryPairs(pub(crate) Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for QueryPairs {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(parts.uri.query().unwrap_or_default()))
    }
}

impl QueryPairs {
    /// Parses a query string.
    pub(crate) fn of(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }
}

/// Joins repeated parameters of a query: clients write lists in either way.
fn lists_joined(uri: &Uri) -> Result<Cow<'_, Uri>, ApiError> {
    let mut lists: BTreeMap<Cow<'_, str>, Cow<'_, str>> = BTreeMap::new();
    let mut joined = false;
    for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        match lists.entry(name) {
            Entry::Vacant(place) => {
                place.insert(value);
            }
            Entry::Occupied(list) => {
                let list = list.into_mut().to_mut();
                list.push(',');
                list.push_str(&value);
                joined = true;
            }
        }
    }
    if !joined {
        return Ok(Cow::Borrowed(uri));
    }
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(lists)
        .finish();
    Uri::builder()
        .path_and_query(format!("/?{query}"))
        .build()
        .map(Cow::Owned)
        .map_err(|error| ApiError::bad_request(format!("The query cannot be read: {error}")))
}

/// Parses a flag of a query or a path, in any case, because Python clients send `True`, and with spaces around it, because
/// ThingsBoard's own pages send them; `None` if it is empty.
pub(crate) fn parse_flag(text: &str) -> Result<Option<bool>, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "" => Ok(None),
        "true" | "on" | "yes" | "1" => Ok(Some(true)),
        "false" | "off" | "no" | "0" => Ok(Some(false)),
        _ => Err(format!("\"{text}\" is neither true nor false")),
    }
}

/// Deserializes a flag of a query that may be absent (with `#[serde(default)]`) or empty.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    let text = Cow::<'de, str>::deserialize(deserializer)?;
    parse_flag(&text).map_err(D::Error::custom)
}

/// Deserializes a required flag of a query.
pub(crate) fn required_flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    flag(deserializer)?.ok_or_else(|| D::Error::custom("a flag is empty"))
}

/// The path parameters of a request in order, all of them UUIDs.
pub(crate) struct PathIds<const N: usize>(pub(crate) [Uuid; N]);

impl<S: Send + Sync, const N: usize> FromRequestParts<S> for PathIds<N> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|rejection| ApiError::bad_request(rejection.body_text()))?;
        let ids: Vec<Uuid> = params
            .iter()
            .map(|(_, text)| parse_uuid(text))
            .collect::<Result<_, _>>()?;
        ids.try_into()
            .map(Self)
            .map_err(|_| ApiError::bad_request("The path does not hold as many ids as it should"))
    }
}

/// The path parameters of a request for a version of something: its id and the version.
pub(crate) struct PathVersion {
    pub(crate) id: Uuid,
    pub(crate) version: i64,
}

impl<S: Send + Sync> FromRequestParts<S> for PathVersion {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|rejection| ApiError::bad_request(rejection.body_text()))?;
        let texts: Vec<&str> = params.iter().map(|(_, text)| text).collect();
        let [id, version] = texts[..] else {
            return Err(ApiError::bad_request(
                "The path does not hold an id and a version",
            ));
        };
        Ok(Self {
            id: parse_uuid(id)?,
            version: version
                .parse()
                .map_err(|_| ApiError::bad_request(format!("Invalid version: {version}")))?,
        })
    }
}

/// Parses a bare UUID.
pub(crate) fn parse_uuid(text: &str) -> Result<Uuid, ApiError> {
    // Only the hyphenated form: the crate would also accept braces and URNs.
    if text.len() == 36
        && let Ok(id) = Uuid::from_str(text)
    {
        return Ok(id);
    }
    Err(ApiError::bad_request(format!("Invalid UUID string: {text}")))
}

/// Parses a comma-joined list of bare UUIDs.
pub(crate) fn parse_uuids<T>(name: &str, list: &str, id: impl Fn(Uuid) -> T) -> Result<Vec<T>, ApiError> {
    const MOST: usize = 1000;
    if list.is_empty() {
        return Err(missing(name));
    }
    if list.split(',').count() > MOST {
        return Err(ApiError::bad_request(format!(
            "Parameter '{name}' holds more than {MOST} ids!"
        )));
    }
    list.split(',')
        .map(|text| parse_uuid(text.trim()).map(&id))
        .collect()
}

/// Returns the error for a missing required parameter.
pub(crate) fn missing(name: &str) -> ApiError {
    ApiError::bad_request(format!("Parameter '{name}' can't be empty!"))
}

/// Returns the error for a missing required field of a body.
pub(crate) fn must_not_be_null(name: &str) -> ApiError {
    ApiError::bad_request(format!("Validation error: {name} must not be null"))
}

/// The page parameters of all lists.
#[derive(Debug, Default, Clone, serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageParams {
    /// Entities per page.
    #[param(required = true, value_type = u32)]
    page_size: Option<String>,
    /// Page index from 0.
    #[param(required = true, value_type = u32)]
    page: Option<String>,
    /// Case-insensitive text to search for.
    text_search: Option<String>,
    /// Property to sort by.
    sort_property: Option<String>,
    /// `ASC` or `DESC`.
    sort_order: Option<String>,
}

/// Most entities per page.
const MAX_PAGE_SIZE: u32 = 10_000;

impl PageParams {
    /// Replaces the sort property, for lists with only one order.
    pub(crate) fn sorted_by(mut self, property: &str) -> Self {
        self.sort_property = Some(property.to_owned());
        self
    }

    /// Returns the requested page.
    pub(crate) fn link(self) -> Result<PageLink, ApiError> {
        let page_size = number("pageSize", self.page_size.as_deref())?;
        let page = number("page", self.page.as_deref())?;
        if page_size < 1 {
            return Err(ApiError::bad_request(
                "Incorrect page link page size '0'. Page size must be greater than zero.",
            ));
        }
        let present = |text: Option<String>| text.filter(|text| !text.is_empty());
        let sort_property = present(self.sort_property);
        let sort_order = match present(self.sort_order).filter(|_| sort_property.is_some()) {
            None => None,
            Some(order) if order.eq_ignore_ascii_case("ASC") => Some(SortOrder::Asc),
            Some(order) if order.eq_ignore_ascii_case("DESC") => Some(SortOrder::Desc),
            Some(order) => {
                return Err(ApiError::bad_request(format!(
                    "Unsupported sort order '{order}'! Only 'ASC' or 'DESC' types are allowed."
                )));
            }
        };
        Ok(PageLink {
            page_size: page_size.min(MAX_PAGE_SIZE),
            page,
            text_search: present(self.text_search),
            sort_property,
            sort_order,
        })
    }
}

fn number(name: &str, text: Option<&str>) -> Result<u32, ApiError> {
    let text = text.filter(|text| !text.is_empty()).ok_or_else(|| {
        ApiError::bad_request(format!(
            "Required request parameter '{name}' for method parameter type int is not present"
        ))
    })?;
    text.parse().map_err(|_| {
        if text.parse::<i32>().is_ok() {
            let (what, rule) = match name {
                "page" => ("page", "Page must be positive integer."),
                _ => ("page size", "Page size must be greater than zero."),
            };
            return ApiError::bad_request(format!("Incorrect page link {what} '{text}'. {rule}"));
        }
        ApiError::bad_request(format!(
            "Parameter '{name}' must be a number that is not negative, not '{text}'"
        ))
    })
}
