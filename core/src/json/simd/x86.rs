//! SSE2, which every x86-64 processor has, and AVX2.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    _mm_sub_epi8, _mm256_cmpeq_epi8, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256,
    _mm256_set1_epi8, _mm256_sub_epi8,
};

use super::super::blocks::{self, Vector};

pub(super) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
}

pub(super) fn container_sse2(text: &[u8], at: usize) -> Option<usize> {
    blocks::container::<Sse2>(text, at)
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn container_avx2(text: &[u8], at: usize) -> Option<usize> {
    blocks::container::<Avx2>(text, at)
}

#[inline(always)]
pub(super) fn marks(block: &[u8; 16]) -> u32 {
    // SAFETY: x86-64 has SSE2; both are 16 bytes, and any bits make a vector.
    let bits = unsafe {
        let block = std::mem::transmute::<[u8; 16], __m128i>(*block);
        let quotes = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'"'.cast_signed()));
        let backslashes = _mm_cmpeq_epi8(block, _mm_set1_epi8(b'\\'.cast_signed()));
        _mm_movemask_epi8(_mm_or_si128(quotes, backslashes))
    };
    bits.cast_unsigned()
}

#[derive(Clone, Copy)]
struct Sse2([__m128i; 4]);

impl Sse2 {
    #[inline(always)]
    fn map(self, step: impl Fn(__m128i) -> __m128i) -> Self {
        let [a, b, c, d] = self.0;
        Self([step(a), step(b), step(c), step(d)])
    }

    #[inline(always)]
    fn mask(self) -> u64 {
        let bits = |quarter| {
            // SAFETY: x86-64 has SSE2.
            let bits = unsafe { _mm_movemask_epi8(quarter) };
            u64::from(bits.cast_unsigned())
        };
        let [a, b, c, d] = self.0;
        bits(a) | bits(b) << 16 | bits(c) << 32 | bits(d) << 48
    }
}

impl Vector for Sse2 {
    #[inline(always)]
    fn load(block: &[u8; 64]) -> Self {
        // SAFETY: both are 64 bytes, and any bits make a vector.
        Self(unsafe { std::mem::transmute::<[u8; 64], [__m128i; 4]>(*block) })
    }

    #[inline(always)]
    fn are(self, byte: u8) -> u64 {
        // SAFETY: x86-64 has SSE2.
        self.map(|quarter| unsafe { _mm_cmpeq_epi8(quarter, _mm_set1_epi8(byte.cast_signed())) })
            .mask()
    }

    #[inline(always)]
    fn are_either(self, byte: u8) -> u64 {
        // SAFETY: x86-64 has SSE2.
        self.map(|quarter| unsafe { _mm_or_si128(quarter, _mm_set1_epi8(0x20)) })
            .are(byte)
    }

    #[inline(always)]
    fn are_digits(self) -> u64 {
        // SAFETY: x86-64 has SSE2.
        self.map(|quarter| unsafe {
            let above = _mm_sub_epi8(quarter, _mm_set1_epi8(b'0'.cast_signed()));
            _mm_cmpeq_epi8(_mm_min_epu8(above, _mm_set1_epi8(9)), above)
        })
        .mask()
    }
}

/// Made in [`container_avx2`] alone: its methods are safe where that may be called. Without closures,
/// which would not be compiled for AVX2.
#[derive(Clone, Copy)]
struct Avx2(__m256i, __m256i);

impl Avx2 {
    #[inline(always)]
    fn mask(self) -> u64 {
        // SAFETY: an `Avx2` exists only where the processor has AVX2.
        let (low, high) = unsafe { (_mm256_movemask_epi8(self.0), _mm256_movemask_epi8(self.1)) };
        u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32
    }
}

impl Vector for Avx2 {
    #[inline(always)]
    fn load(block: &[u8; 64]) -> Self {
        // SAFETY: both are 64 bytes, and any bits make a vector.
        let [low, high] = unsafe { std::mem::transmute::<[u8; 64], [__m256i; 2]>(*block) };
        Self(low, high)
    }

    #[inline(always)]
    fn are(self, byte: u8) -> u64 {
        // SAFETY: an `Avx2` exists only where the processor has AVX2.
        let equal = unsafe {
            let byte = _mm256_set1_epi8(byte.cast_signed());
            Self(
                _mm256_cmpeq_epi8(self.0, byte),
                _mm256_cmpeq_epi8(self.1, byte),
            )
        };
        equal.mask()
    }

    #[inline(always)]
    fn are_either(self, byte: u8) -> u64 {
        // SAFETY: an `Avx2` exists only where the processor has AVX2.
        let set = unsafe {
            let bit = _mm256_set1_epi8(0x20);
            Self(_mm256_or_si256(self.0, bit), _mm256_or_si256(self.1, bit))
        };
        set.are(byte)
    }

    #[inline(always)]
    fn are_digits(self) -> u64 {
        // SAFETY: an `Avx2` exists only where the processor has AVX2.
        let digits = unsafe {
            let (zero, nine) = (_mm256_set1_epi8(b'0'.cast_signed()), _mm256_set1_epi8(9));
            let (low, high) = (_mm256_sub_epi8(self.0, zero), _mm256_sub_epi8(self.1, zero));
            Self(
                _mm256_cmpeq_epi8(_mm256_min_epu8(low, nine), low),
                _mm256_cmpeq_epi8(_mm256_min_epu8(high, nine), high),
            )
        };
        digits.mask()
    }
}
