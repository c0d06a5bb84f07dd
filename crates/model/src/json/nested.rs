//! Objects and arrays within values, rewritten as compact strict JSON text.

use super::JsonError;
use super::escape::write_string_bytes;
use super::reader::{JsonReader, UnquotedToken};
use super::repeated::{self, MemberSpan};

/// Appends the value at the reader as compact JSON.
pub(super) fn compact(reader: &mut JsonReader<'_>, out: &mut Vec<u8>) -> Result<(), JsonError> {
    value(reader, &mut Vec::new(), out)
}

/// `members` are those of the objects that are open, outermost first: one stack for all of them.
fn value(
    reader: &mut JsonReader<'_>,
    members: &mut Vec<MemberSpan>,
    out: &mut Vec<u8>,
) -> Result<(), JsonError> {
    match reader.token()? {
        b'{' => object(reader, members, out)?,
        b'[' => array(reader, members, out)?,
        quote @ (b'"' | b'\'') => write_string_bytes(&reader.quoted(quote)?, out),
        _ => match reader.word()? {
            UnquotedToken::Null => out.extend_from_slice(b"null"),
            UnquotedToken::Bool(true) => out.extend_from_slice(b"true"),
            UnquotedToken::Bool(false) => out.extend_from_slice(b"false"),
            UnquotedToken::Number(number) => out.extend_from_slice(number.as_bytes()),
            UnquotedToken::Text(text) => write_string_bytes(text, out),
        },
    }
    Ok(())
}

fn array(
    reader: &mut JsonReader<'_>,
    members: &mut Vec<MemberSpan>,
    out: &mut Vec<u8>,
) -> Result<(), JsonError> {
    reader.enter()?;
    out.push(b'[');
    let mut first = true;
    loop {
        let byte = reader.token()?;
        if first && byte == b']' {
            break;
        }
        first = false;
        // An empty slot is a null, the one after a last comma too.
        match byte {
            b',' | b';' | b']' => out.extend_from_slice(b"null"),
            _ => value(reader, members, out)?,
        }
        match reader.token()? {
            b',' | b';' => reader.skip_byte(),
            b']' => break,
            _ => return Err(reader.error("expected `,` or `]`")),
        }
        out.push(b',');
    }
    reader.leave();
    out.push(b']');
    Ok(())
}

fn object(
    reader: &mut JsonReader<'_>,
    members: &mut Vec<MemberSpan>,
    out: &mut Vec<u8>,
) -> Result<(), JsonError> {
    reader.enter()?;
    out.push(b'{');
    let outer = members.len();
    let body = out.len();
    while let Some(name) = reader.name(out.len() == body)? {
        let start = out.len();
        write_string_bytes(&name, out);
        let key = start..out.len();
        out.push(b':');
        value(reader, members, out)?;
        out.push(b',');
        members.push(MemberSpan {
            hash: repeated::hash(name.as_bytes()),
            key,
            whole: start..out.len(),
        });
    }
    if let Some(own) = members.get_mut(outer..) {
        drop_repeated(own, body, out);
    }
    members.truncate(outer);
    if out.len() > body {
        out.pop();
    }
    out.push(b'}');
    Ok(())
}

fn drop_repeated(members: &mut [MemberSpan], body: usize, out: &mut Vec<u8>) {
    let replaced = repeated::find(members, out);
    if replaced.is_empty() {
        return;
    }
    members.sort_unstable_by_key(|member| member.whole.start);
    let mut replaced = replaced.into_iter().peekable();
    let mut end = body;
    for member in members {
        if replaced.next_if_eq(&member.whole.start).is_some() {
            continue;
        }
        let length = member.whole.len();
        out.copy_within(member.whole.clone(), end);
        end += length;
    }
    out.truncate(end);
}
