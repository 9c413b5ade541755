// SPDX-License-Identifier: Apache-2.0
//! Text as Java decodes it from bytes that may not be valid UTF-8.

/// `new String(bytes, UTF_8)`: each malformed sequence becomes one U+FFFD.
///
/// Rust and Java agree on the length of a malformed sequence, except for half a surrogate pair:
/// Java also consumes its second byte and a third continuation byte, Rust only the first byte.
pub fn java_text(bytes: &[u8]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_sequences_as_javas_decoder_counts_them() {
        // (bytes, number of replacements, the text without the replacements)
        let cases: &[(&[u8], usize, &str)] = &[
            (b"plain \xc3\xa9", 0, "plain \u{e9}"),
            (b"\xff", 1, ""),
            (b"\xc0\xaf", 2, ""),
            (b"\xc3", 1, ""),
            (b"\xc3a", 1, "a"),
            (b"\xe4\xb8", 1, ""),
            (b"\xe4\xb8a", 1, "a"),
            (b"\xe0\x80\x80", 3, ""),
            (b"\xed\xa0\x80", 1, ""),
            (b"\xed\xa0", 1, ""),
            (b"\xed\xa0a", 1, "a"),
            (b"\xed\xa0\x80\xed\xb0\x80", 2, ""),
            (b"\xf0\x9f\x98", 1, ""),
            (b"\xf0\x80\x80\x80", 4, ""),
            (b"\xf4\x90\x80\x80", 4, ""),
            (b"\xf5\x80\x80\x80", 4, ""),
        ];
        for (bytes, replaced, rest) in cases {
            let text = java_text(bytes);
            assert_eq!(text.matches('\u{fffd}').count(), *replaced, "{bytes:x?}");
            assert_eq!(text.replace('\u{fffd}', ""), *rest, "{bytes:x?}");
        }
    }
}
