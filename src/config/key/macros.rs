//! How the rows of the table of keys are written.

/// A key set from one scalar. It has the name of its field, is read by `$parse` and written by
/// `$show`.
macro_rules! scalar {
    ($field:ident, $hint:literal, $parse:expr, $show:expr, $doc:literal $(,)?) => {
        Key {
            name: stringify!($field),
            hint: $hint,
            doc: $doc,
            flag: None,
            choices: &[],
            bears: Bears::OnAnswers,
            set: Setter::Scalar(|config, text| {
                config.$field = $parse(text)?;
                Ok(())
            }),
            show: |config| $show(&config.$field),
        }
    };
}

/// The same for a key that no answer follows from.
macro_rules! beside {
    ($($key:tt)*) => {
        scalar!($($key)*).beside()
    };
}
