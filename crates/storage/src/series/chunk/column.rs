//! Columns of a chunk: the cheapest of a few encodings for each, behind a code and a length.

use fieldline_model::kv::{CorruptData, read_varint, take, take_array, write_varint};
use pco::ChunkConfig;
use pco::data_types::Number;
use pco::standalone::{simple_compress, simple_decompress_into};

/// Most bytes of text that one chunk decodes to.
const MAX_TEXT_BYTES: usize = 256 << 20;

const STEP: u8 = 0;
const PCO: u8 = 1;
const RAW: u8 = 2;
const LZ4: u8 = 3;
const BITS: u8 = 4;

pub(super) const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub(super) const fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

fn put(code: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(code);
    write_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn take_column<'a>(bytes: &mut &'a [u8]) -> Result<(u8, &'a [u8]), CorruptData> {
    let [code] = take_array::<1>(bytes)?;
    let length = usize::try_from(read_varint(bytes)?).map_err(|_| CorruptData("column too long"))?;
    Ok((code, take(bytes, length)?))
}

/// The step between neighbours where it is always the same.
fn constant_step(numbers: &[i64]) -> Option<(i64, i64)> {
    let (&first, rest) = numbers.split_first()?;
    let step = rest.first().map_or(0, |second| second.wrapping_sub(first));
    let mut previous = first;
    for &number in rest {
        if number.wrapping_sub(previous) != step {
            return None;
        }
        previous = number;
    }
    Some((first, step))
}

fn put_pco<T: Number>(numbers: &[T], raw: impl FnOnce() -> Vec<u8>, out: &mut Vec<u8>) {
    // Compression fails for an invalid configuration only; the plain bytes are always right.
    match simple_compress(numbers, &ChunkConfig::default()) {
        Ok(bytes) if bytes.len() < size_of_val(numbers) => put(PCO, &bytes, out),
        _ => put(RAW, &raw(), out),
    }
}

fn take_pco<T: Number + Default>(bytes: &[u8], count: usize) -> Result<Vec<T>, CorruptData> {
    // The memory is ours to choose: what the compressed bytes say about their length is only compared with it.
    let mut numbers = vec![T::default(); count];
    let progress =
        simple_decompress_into(bytes, &mut numbers).map_err(|_| CorruptData("numbers do not decompress"))?;
    if !progress.finished || progress.n_processed != count {
        return Err(CorruptData("wrong count of numbers"));
    }
    Ok(numbers)
}

pub(super) fn put_longs(numbers: &[i64], out: &mut Vec<u8>) {
    if let Some((first, step)) = constant_step(numbers) {
        let mut bytes = Vec::new();
        write_varint(zigzag(first), &mut bytes);
        write_varint(zigzag(step), &mut bytes);
        return put(STEP, &bytes, out);
    }
    put_pco(
        numbers,
        || numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
        out,
    );
}

pub(super) fn take_longs(bytes: &mut &[u8], count: usize) -> Result<Vec<i64>, CorruptData> {
    let (code, mut column) = take_column(bytes)?;
    match code {
        STEP => {
            let mut next = unzigzag(read_varint(&mut column)?);
            let step = unzigzag(read_varint(&mut column)?);
            Ok((0..count)
                .map(|_| {
                    let number = next;
                    next = next.wrapping_add(step);
                    number
                })
                .collect())
        }
        PCO => take_pco(column, count),
        RAW => take_raw(column, count).map(|numbers| numbers.map(i64::from_le_bytes).collect()),
        _ => Err(CorruptData("unknown encoding of longs")),
    }
}

fn take_raw(column: &[u8], count: usize) -> Result<impl Iterator<Item = [u8; 8]>, CorruptData> {
    let (numbers, rest) = column.as_chunks::<8>();
    if numbers.len() != count || !rest.is_empty() {
        return Err(CorruptData("wrong count of plain numbers"));
    }
    Ok(numbers.iter().copied())
}

pub(super) fn put_doubles(numbers: &[f64], out: &mut Vec<u8>) {
    if let Some(first) = numbers.first().map(|number| number.to_bits())
        && numbers.iter().all(|number| number.to_bits() == first)
    {
        return put(STEP, &first.to_le_bytes(), out);
    }
    put_pco(
        numbers,
        || numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
        out,
    );
}

pub(super) fn take_doubles(bytes: &mut &[u8], count: usize) -> Result<Vec<f64>, CorruptData> {
    let (code, mut column) = take_column(bytes)?;
    match code {
        STEP => Ok(vec![f64::from_le_bytes(take_array(&mut column)?); count]),
        PCO => take_pco(column, count),
        RAW => take_raw(column, count).map(|numbers| numbers.map(f64::from_le_bytes).collect()),
        _ => Err(CorruptData("unknown encoding of doubles")),
    }
}

pub(super) fn put_bools(bits: &[bool], out: &mut Vec<u8>) {
    if let Some(&first) = bits.first()
        && bits.iter().all(|bit| *bit == first)
    {
        return put(STEP, &[u8::from(first)], out);
    }
    let bytes: Vec<u8> = bits
        .chunks(8)
        .map(|byte| {
            byte.iter()
                .rev()
                .fold(0, |packed, bit| packed << 1 | u8::from(*bit))
        })
        .collect();
    put(BITS, &bytes, out);
}

pub(super) fn take_bools(bytes: &mut &[u8], count: usize) -> Result<Vec<bool>, CorruptData> {
    let (code, mut column) = take_column(bytes)?;
    match code {
        STEP => Ok(vec![take_array::<1>(&mut column)? != [0]; count]),
        BITS if column.len() == count.div_ceil(8) => Ok(column
            .iter()
            .flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 1))
            .take(count)
            .collect()),
        _ => Err(CorruptData("unknown encoding of booleans")),
    }
}

/// Any bytes, compressed where that is smaller.
pub(super) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let compressed = lz4_flex::block::compress(bytes);
    if compressed.len() + 4 >= bytes.len() {
        return put(RAW, bytes, out);
    }
    let mut column = Vec::with_capacity(compressed.len() + 4);
    write_varint(bytes.len() as u64, &mut column);
    column.extend_from_slice(&compressed);
    put(LZ4, &column, out);
}

pub(super) fn take_bytes(bytes: &mut &[u8]) -> Result<Vec<u8>, CorruptData> {
    let (code, mut column) = take_column(bytes)?;
    match code {
        RAW => Ok(column.to_vec()),
        LZ4 => {
            let size = usize::try_from(read_varint(&mut column)?).unwrap_or(usize::MAX);
            // A compressed byte stands for at most 255 bytes.
            if size > MAX_TEXT_BYTES || size / 255 > column.len() {
                return Err(CorruptData("text is larger than it can be"));
            }
            let text = lz4_flex::block::decompress(column, size)
                .map_err(|_| CorruptData("text does not decompress"))?;
            if text.len() != size {
                return Err(CorruptData("text has another length"));
            }
            Ok(text)
        }
        _ => Err(CorruptData("unknown encoding of text")),
    }
}
