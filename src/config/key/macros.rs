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

/// A key that holds for every backend that does not set it itself.
macro_rules! of_backends {
    ($name:ident, $part:path, $hint:literal, $doc:literal $(,)?) => {
        Key {
            name: stringify!($name),
            hint: $hint,
            doc: $doc,
            flag: None,
            choices: &[],
            bears: Bears::OnAnswers,
            set: Setter::Scalar(|config, text| ($part.set)(&mut config.access, text)),
            show: |config| $part.show(&config.access),
        }
    };
}

/// The same for a key that no answer follows from.
macro_rules! beside {
    ($($key:tt)*) => {
        scalar!($($key)*).beside()
    };
}
