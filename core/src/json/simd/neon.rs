//! NEON, which every aarch64 processor has.

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vceqq_u8, vcltq_u8, vdupq_n_u8, vgetq_lane_u64, vld1q_u8, vorrq_u8,
    vpaddq_u8, vreinterpretq_u64_u8, vsubq_u8,
};

use super::super::blocks::{self, Vector};

pub(super) fn container(text: &[u8], at: usize) -> Option<usize> {
    blocks::container::<Neon>(text, at)
}

/// For each byte of half a vector, the bit that tells of it in a byte of the mask.
const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

#[derive(Clone, Copy)]
struct Neon([uint8x16_t; 4]);

impl Neon {
    #[inline(always)]
    fn map(self, step: impl Fn(uint8x16_t) -> uint8x16_t) -> Self {
        let [a, b, c, d] = self.0;
        Self([step(a), step(b), step(c), step(d)])
    }

    /// The mask of the bytes that are all ones; the others are zeros. There is no instruction for
    /// that: each byte keeps its bit, and neighbours are added up, three times over.
    #[inline(always)]
    fn mask(self) -> u64 {
        let [a, b, c, d] = self.0;
        // SAFETY: aarch64 has NEON, and `BITS` is as long as what is loaded of it.
        unsafe {
            let bits = vld1q_u8(BITS.as_ptr());
            let ab = vpaddq_u8(vandq_u8(a, bits), vandq_u8(b, bits));
            let cd = vpaddq_u8(vandq_u8(c, bits), vandq_u8(d, bits));
            let all = vpaddq_u8(ab, cd);
            vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(all, all)))
        }
    }
}

impl Vector for Neon {
    #[inline(always)]
    fn load(block: &[u8; 64]) -> Self {
        // SAFETY: both are 64 bytes, and any bits make a vector.
        Self(unsafe { std::mem::transmute::<[u8; 64], [uint8x16_t; 4]>(*block) })
    }

    #[inline(always)]
    fn are(self, byte: u8) -> u64 {
        // SAFETY: aarch64 has NEON.
        self.map(|quarter| unsafe { vceqq_u8(quarter, vdupq_n_u8(byte)) })
            .mask()
    }

    #[inline(always)]
    fn are_either(self, byte: u8) -> u64 {
        // SAFETY: aarch64 has NEON.
        self.map(|quarter| unsafe { vorrq_u8(quarter, vdupq_n_u8(0x20)) })
            .are(byte)
    }

    #[inline(always)]
    fn are_digits(self) -> u64 {
        // SAFETY: aarch64 has NEON.
        self.map(|quarter| unsafe {
            let above = vsubq_u8(quarter, vdupq_n_u8(b'0'));
            vcltq_u8(above, vdupq_n_u8(10))
        })
        .mask()
    }
}
