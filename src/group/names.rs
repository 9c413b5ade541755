// SPDX-License-Identifier: Apache-2.0
//! Compares names. A group of 1,000 members with 1,000 topics each lists a million names, and
//! nearly every one equals the name with which it is compared.

/// Whether two names are equal. Compares eight bytes at a time, inline: names are so short that a
/// call of `memcmp` takes longer than its comparison.
#[inline]
pub fn same_name(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    // The same string in memory, for example of one Python object.
    if std::ptr::eq(a, b) {
        return true;
    }
    if let (Some(x), Some(y)) = (a.last_chunk::<8>(), b.last_chunk::<8>()) {
        // The last eight bytes may overlap the chunk before.
        let mut chunks = a.chunks_exact(8).zip(b.chunks_exact(8));
        return number(x) == number(y) && chunks.all(|(x, y)| x == y);
    }
    if let (Some(x), Some(y)) = (a.last_chunk::<4>(), b.last_chunk::<4>()) {
        return x == y && a[..4] == b[..4];
    }
    a.iter().eq(b)
}

fn number(bytes: &[u8; 8]) -> u64 {
    u64::from_ne_bytes(*bytes)
}

#[cfg(test)]
mod tests {
    use super::same_name;

    #[test]
    fn names_that_differ_in_one_byte_are_not_equal() {
        for length in 0..40 {
            let name = "x".repeat(length);
            assert!(same_name(&name, &name.clone()));
            assert!(!same_name(&name, &format!("{name}x")));
            for at in 0..length {
                let mut other = name.clone().into_bytes();
                other[at] = b'y';
                let other = String::from_utf8(other).expect("ASCII");
                assert!(!same_name(&name, &other), "{name} {other}");
            }
        }
    }
}
