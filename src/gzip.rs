//! The coding `gzip` of bodies (RFC 1952), part by part. Knows bytes alone.

use std::io::Write as _;

use bytes::{Buf, Bytes};
use flate2::write::GzEncoder;
use flate2::{Compression, Decompress, FlushDecompress, Status};

/// Bytes that are decompressed at a time: what a short run of compressed ones may come to is a
/// thousand times its length.
const PIECE: usize = 32 << 10;

/// The largest window that there is, as the exponent of its size.
const WINDOW: u8 = 15;

/// A body that is compressed. JSON shrinks to a tenth by the fastest level; a better one costs
/// several times as much for a little more (docs/decisions/003).
#[derive(Debug)]
pub(crate) struct Gzip(GzEncoder<Vec<u8>>);

impl Gzip {
    /// Nothing of it so far.
    pub(crate) fn new() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::fast()))
    }

    /// Takes the next bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        // Memory takes whatever is written to it.
        let _always = self.0.write_all(bytes);
    }

    /// Makes all that was taken so far readable for who has what is ready.
    pub(crate) fn flush(&mut self) {
        let _always = self.0.flush();
    }

    /// How many compressed bytes are ready.
    pub(crate) fn ready(&self) -> usize {
        self.0.get_ref().len()
    }

    /// Takes the compressed bytes that are ready.
    pub(crate) fn take(&mut self) -> Bytes {
        std::mem::take(self.0.get_mut()).into()
    }

    /// The compressed bytes that are left, with the end.
    pub(crate) fn finish(self) -> Bytes {
        self.0.finish().unwrap_or_default().into()
    }
}

/// A body compressed at once.
pub(crate) fn compress(body: &[u8]) -> Bytes {
    let mut gzip = Gzip::new();
    gzip.write(body);
    gzip.finish()
}

/// A body that is decompressed.
#[derive(Debug)]
pub(crate) struct Gunzip {
    inflate: Decompress,
    /// Compressed bytes that are not read yet.
    input: Bytes,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing to give before more has come.
    Hungry,
    /// The last piece was a full one: more may follow without another byte of input.
    Full,
    /// A member has ended, as far as is known the last.
    Ended,
}

/// Why a body is not what `gzip` makes of one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// It is none, or its checksum is another's.
    #[error("it is damaged")]
    Malformed,
    /// It ends before its end.
    #[error("it breaks off")]
    Cut,
}

impl Gunzip {
    /// Nothing of it so far.
    pub(crate) fn new() -> Self {
        Self {
            inflate: Decompress::new_gzip(WINDOW),
            input: Bytes::new(),
            stage: Stage::Hungry,
        }
    }

    /// Takes the next compressed bytes, once [`Gunzip::piece`] has given all of those before.
    pub(crate) fn feed(&mut self, input: Bytes) {
        self.input = input;
    }

    /// The next bytes of the body, a bounded number of them; `None` if more must be fed first.
    pub(crate) fn piece(&mut self) -> Result<Option<Bytes>, Damage> {
        while !self.input.is_empty() || self.stage == Stage::Full {
            if self.stage == Stage::Ended {
                // Another member, whose text goes on where the last one's ended.
                self.inflate = Decompress::new_gzip(WINDOW);
            }
            let mut piece = Vec::with_capacity(PIECE);
            let before = self.inflate.total_in();
            let none = FlushDecompress::None;
            let status = self
                .inflate
                .decompress_vec(&self.input, &mut piece, none)
                .map_err(|_| Damage::Malformed)?;
            let read = usize::try_from(self.inflate.total_in() - before);
            self.input.advance(read.unwrap_or(self.input.len()));
            self.stage = match status {
                Status::StreamEnd => Stage::Ended,
                Status::Ok | Status::BufError if piece.len() == piece.capacity() => Stage::Full,
                Status::Ok | Status::BufError => Stage::Hungry,
            };
            if !piece.is_empty() {
                return Ok(Some(piece.into()));
            }
        }
        Ok(None)
    }

    /// Whether the body may end here.
    pub(crate) fn end(&self) -> Result<(), Damage> {
        match self.stage {
            Stage::Ended => Ok(()),
            Stage::Hungry | Stage::Full => Err(Damage::Cut),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What comes of compressed bytes that arrive in runs of `length`, and its longest piece.
    fn decompress(compressed: &[u8], length: usize) -> Result<(Vec<u8>, usize), Damage> {
        let mut gunzip = Gunzip::new();
        let (mut whole, mut longest) = (Vec::new(), 0);
        for part in compressed.chunks(length) {
            gunzip.feed(Bytes::copy_from_slice(part));
            while let Some(piece) = gunzip.piece()? {
                longest = longest.max(piece.len());
                whole.extend_from_slice(&piece);
            }
        }
        gunzip.end()?;
        Ok((whole, longest))
    }

    proptest! {
        #[test]
        fn what_is_compressed_comes_back_however_both_are_cut(
            body in prop::collection::vec(prop_oneof![Just(b'a'), any::<u8>()], 0..40_000),
            cut in 500..50_000usize,
            compressed_cut in 300..5_000usize,
        ) {
            let mut gzip = Gzip::new();
            let mut compressed = Vec::new();
            for part in body.chunks(cut) {
                gzip.write(part);
                gzip.flush();
                compressed.extend_from_slice(&gzip.take());
            }
            compressed.extend_from_slice(&gzip.finish());
            prop_assert_eq!(decompress(&compressed, compressed_cut).unwrap().0, &body[..]);
            prop_assert_eq!(decompress(&compress(&body), 1 << 20).unwrap().0, body);
        }

        #[test]
        fn a_body_that_lacks_an_end_or_has_another_byte_is_never_taken_for_another_one(
            body in prop::collection::vec(any::<u8>(), 1..2_000),
            at in any::<prop::sample::Index>(),
            flip in 1..=255u8,
        ) {
            let compressed = compress(&body);
            let at = at.index(compressed.len());
            prop_assert!(decompress(&compressed[..at], 100).is_err());
            let mut damaged = compressed.to_vec();
            damaged[at] ^= flip;
            // Some bits mean nothing: of the head's, and those that fill up the last byte.
            if let Ok((text, _)) = decompress(&damaged, 100) {
                prop_assert_eq!(text, body);
            }
        }
    }

    #[test]
    fn a_bomb_is_given_out_in_bounded_pieces() {
        let bomb = compress(&vec![b' '; 10 << 20]);
        assert!(bomb.len() < 100 << 10);
        let (whole, longest) = decompress(&bomb, bomb.len()).unwrap();
        assert_eq!(whole.len(), 10 << 20);
        assert!(longest <= PIECE, "{longest}");
    }

    #[test]
    fn members_are_read_one_after_the_other_and_what_is_no_member_is_damage() {
        let two = [&compress(b"[1,")[..], &compress(b"2]")].concat();
        for length in 1..=two.len() {
            assert_eq!(decompress(&two, length).unwrap().0, b"[1,2]");
        }
        let followed = [&compress(b"[]")[..], b"more"].concat();
        assert_eq!(decompress(&followed, 100).unwrap_err(), Damage::Malformed);
        assert_eq!(decompress(b"", 1).unwrap_err(), Damage::Cut);
        assert_eq!(decompress(b"[]", 1).unwrap_err(), Damage::Malformed);
    }

    #[test]
    fn what_is_flushed_can_be_read_before_the_rest_comes() {
        let mut gzip = Gzip::new();
        gzip.write(b"[1");
        gzip.flush();
        let mut gunzip = Gunzip::new();
        gunzip.feed(gzip.take());
        assert_eq!(gunzip.piece().unwrap().unwrap(), "[1");
        assert_eq!((gunzip.piece().unwrap(), gzip.ready()), (None, 0));
    }
}
