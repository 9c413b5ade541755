// SPDX-License-Identifier: Apache-2.0
//! Text as Java decodes it from bytes that may not be valid UTF-8.

use std::borrow::Cow;
use std::str::Utf8Error;

/// Returns the result of `str::from_utf8`, but faster for short names: nearly all names are ASCII,
/// and the test for ASCII reads many bytes at a time.
pub fn utf8(bytes: &[u8]) -> Result<&str, Utf8Error> {
    if bytes.is_ascii() {
        // SAFETY: ASCII is UTF-8.
        return Ok(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes)
}

/// Decodes as Java's `new String(bytes, UTF_8)` does: each malformed sequence becomes one U+FFFD.
///
/// Rust and Java agree on the length of a malformed sequence, except for an encoded half of a
/// surrogate pair: Rust takes one byte; Java takes two, or three if a continuation byte follows.
pub fn java_text(bytes: &[u8]) -> Cow<'_, str> {
    match utf8(bytes) {
        Ok(valid) => Cow::Borrowed(valid),
        Err(_) => Cow::Owned(repaired(bytes)),
    }
}

fn repaired(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut left = bytes;
    loop {
        let error = match std::str::from_utf8(left) {
            Ok(valid) => {
                text.push_str(valid);
                return text;
            }
            Err(error) => error,
        };
        let (valid, malformed) = left.split_at(error.valid_up_to());
        text.push_str(&String::from_utf8_lossy(valid));
        text.push(char::REPLACEMENT_CHARACTER);
        let length = match malformed {
            [0xED, 0xA0..=0xBF, 0x80..=0xBF, ..] => 3,
            [0xED, 0xA0..=0xBF, ..] => 2,
            _ => error.error_len().unwrap_or(malformed.len()),
        };
        left = &malformed[length..];
    }
}
