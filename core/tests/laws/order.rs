//! What any order must keep. Shared with the fuzz targets.

use std::cmp::Ordering;
use std::fmt::Debug;

/// Fails unless `order` is total on `values`: reflexive, antisymmetric and transitive.
pub(crate) fn assert_total<T: Debug>(values: &[T; 3], order: impl Fn(&T, &T) -> Ordering) {
    for a in values {
        assert_eq!(order(a, a), Ordering::Equal, "{a:?} with itself");
        for b in values {
            assert_eq!(order(a, b), order(b, a).reverse(), "{a:?} and {b:?}");
            for c in values {
                let steps = [order(a, b), order(b, c)];
                if steps.iter().all(|step| step.is_le()) {
                    // Not even equal ends are allowed around a step that goes up.
                    let expected = steps.into_iter().min();
                    assert_eq!(Some(order(a, c)), expected, "{a:?}, {b:?}, {c:?}");
                }
            }
        }
    }
}
