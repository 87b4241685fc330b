//! Hashes and UUIDs that depend on nothing but the text they stand for.

/// 40 hex digits, like the SHA-1 hashes of PuppetDB. Only equality matters, so this is FNV-1a over
/// the text behind a byte that differs for each part.
pub(super) fn hash(text: &str) -> String {
    let part = |salt: u8| {
        let bytes = [salt].into_iter().chain(text.bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    let (first, second, third) = (part(0), part(1), part(2) >> 32);
    format!("{first:016x}{second:016x}{third:08x}")
}

/// A UUID made of [`hash`].
pub(super) fn uuid(text: &str) -> String {
    let hash = hash(text);
    let parts = [
        &hash[..8],
        &hash[8..12],
        &hash[12..16],
        &hash[16..20],
        &hash[20..32],
    ];
    parts.join("-")
}
