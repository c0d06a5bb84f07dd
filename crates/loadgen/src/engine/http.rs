//! HTTP/1.1 for simulated devices: one request at a time over a persistent connection.

use std::io::Write as _;

use super::ServerReply;
use crate::error::LoadError;

const MAX_HEADERS: usize = 64;

/// Appends a POST of a device; `prefix` is the part of the path before that of the API.
pub(super) fn put_post(host: &str, prefix: &str, token: &str, what: &str, payload: &[u8], out: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = write!(
        out,
        "POST {prefix}/api/v1/{token}/{what} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        payload.len()
    );
    out.extend_from_slice(payload);
}

/// Parses the complete responses at the beginning of `input`, and returns their length in bytes. A response after which
/// the server closes the connection is passed to `heard`, and then reported as an error.
pub(super) fn parse_responses(
    input: &[u8],
    mut heard: impl FnMut(ServerReply<'_>) -> Result<(), LoadError>,
) -> Result<usize, LoadError> {
    let mut used = 0;
    loop {
        let mut is_last = false;
        let taken = parse_response(input.get(used..).unwrap_or_default(), |answer| {
            is_last = matches!(answer, ServerReply::Answered { closes: true, .. });
            heard(answer)
        })?;
        used += taken;
        if is_last {
            return Err(LoadError::Engine("the server closed the connection".to_owned()));
        }
        if taken == 0 {
            return Ok(used);
        }
    }
}

/// Parses one response at the beginning of `input`. Returns its length in bytes, 0 if it is incomplete.
fn parse_response(
    input: &[u8],
    heard: impl FnOnce(ServerReply<'_>) -> Result<(), LoadError>,
) -> Result<usize, LoadError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut answer = httparse::Response::new(&mut headers);
    let head = match answer.parse(input) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(0),
        Err(error) => return Err(LoadError::Engine(format!("the server sent no HTTP: {error}"))),
    };
    let value = |name: &str| {
        answer
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))
            .and_then(|header| std::str::from_utf8(header.value).ok())
    };
    let status = answer.code.unwrap_or_default();
    if (100..200).contains(&status) {
        // The final response is still to come.
        return Ok(head);
    }
    let (length, coding) = (value("content-length"), value("transfer-encoding"));
    let ends_with_connection = length.is_none() && coding.is_none() && !matches!(status, 204 | 304);
    let body = match (length, coding) {
        (_, Some(coding)) if coding.eq_ignore_ascii_case("chunked") => {
            match chunked_len(input.get(head..).unwrap_or_default())? {
                Some(length) => length,
                None => return Ok(0),
            }
        }
        (Some(length), _) => length
            .trim()
            .parse()
            .map_err(|_| LoadError::Engine(format!("an answer has the length `{length}`")))?,
        (None, _) => 0,
    };
    if input.len() < head + body {
        return Ok(0);
    }
    let closes =
        ends_with_connection || value("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    heard(ServerReply::Answered { status, closes })?;
    Ok(head + body)
}

/// Returns the length of a chunked body, trailer included; `None` if it is incomplete.
fn chunked_len(input: &[u8]) -> Result<Option<usize>, LoadError> {
    let mut used = 0;
    loop {
        match httparse::parse_chunk_size(input.get(used..).unwrap_or_default()) {
            Ok(httparse::Status::Complete((line, size))) => {
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                used = used.saturating_add(line).saturating_add(size).saturating_add(2);
                if used > input.len() {
                    return Ok(None);
                }
                if size == 0 {
                    return Ok(Some(used));
                }
            }
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(LoadError::Engine("an answer has a wrong chunk".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(input: &[u8]) -> Result<(usize, Option<u16>), LoadError> {
        let mut status = None;
        let used = parse_response(input, |heard| {
            if let ServerReply::Answered { status: code, .. } = heard {
                status = Some(code);
            }
            Ok(())
        })?;
        Ok((used, status))
    }

    #[test]
    fn answers_with_and_without_bodies_are_taken_when_whole() {
        for whole in [
            &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 400 Bad Request\r\nContent-Length: 5\r\n\r\nwrong",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ] {
            for cut in 0..whole.len() {
                let part = whole.get(..cut).expect("a part");
                assert_eq!(answers(part).expect("no error"), (0, None), "{cut}");
            }
            let (used, status) = answers(whole).expect("an answer");
            assert_eq!(used, whole.len());
            assert!(matches!(status, Some(200 | 400)));
        }
    }

    #[test]
    fn what_only_announces_an_answer_is_none() {
        let announced = b"HTTP/1.1 100 Continue\r\n\r\n";
        assert_eq!(answers(announced).expect("no error"), (announced.len(), None));
    }

    #[test]
    fn a_connection_is_used_again_unless_the_answer_says_otherwise() {
        for (answer, ends) in [
            (&b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..], false),
            (b"HTTP/1.1 204 No Content\r\n\r\n", false),
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nConnection: Close\r\n\r\n",
                true,
            ),
            (b"HTTP/1.1 200 OK\r\n\r\n", true),
        ] {
            let mut closing = None;
            parse_response(answer, |heard| {
                if let ServerReply::Answered { closes, .. } = heard {
                    closing = Some(closes);
                }
                Ok(())
            })
            .expect("an answer");
            assert_eq!(closing, Some(ends), "{}", String::from_utf8_lossy(answer));
        }
    }

    #[test]
    fn what_is_no_http_is_an_error() {
        assert!(answers(b"\x20\x02\x00\x00").is_err());
        assert!(answers(b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n").is_err());
    }
}
