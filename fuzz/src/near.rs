//! JSON that an input decides about, in words that the code under test reacts to. Mutated bytes
//! alone seldom stay JSON for long.

use libfuzzer_sys::arbitrary::{Result, Unstructured};

/// What the JSON is made of.
#[derive(Debug)]
pub struct Words {
    /// Names of members, unquoted.
    pub keys: &'static [&'static str],
    /// Everything but arrays and objects, as JSON.
    pub scalars: &'static [&'static str],
}

impl Words {
    /// A value with at most `depth` containers inside each other.
    pub fn value(&self, input: &mut Unstructured<'_>, depth: u8) -> Result<String> {
        match input.int_in_range(0..=if depth == 0 { 1 } else { 3 })? {
            3 => self.object(input, depth - 1),
            2 => self.array(input, depth - 1),
            _ => Ok((*input.choose(self.scalars)?).to_owned()),
        }
    }

    /// An array of values.
    pub fn array(&self, input: &mut Unstructured<'_>, depth: u8) -> Result<String> {
        let items = (0..input.int_in_range(0..=4)?).map(|_| self.value(input, depth));
        Ok(format!(
            "[{}]",
            items.collect::<Result<Vec<_>>>()?.join(",")
        ))
    }

    /// An object. Its keys may repeat.
    pub fn object(&self, input: &mut Unstructured<'_>, depth: u8) -> Result<String> {
        let members = (0..input.int_in_range(0..=5)?).map(|_| {
            let key = *input.choose(self.keys)?;
            Ok(format!("\"{key}\":{}", self.value(input, depth)?))
        });
        Ok(format!(
            "{{{}}}",
            members.collect::<Result<Vec<_>>>()?.join(",")
        ))
    }

    /// An array of objects, as backends answer with.
    pub fn records(&self, input: &mut Unstructured<'_>) -> Result<String> {
        let records = (0..input.int_in_range(0..=5)?).map(|_| self.object(input, 2));
        Ok(format!(
            "[{}]",
            records.collect::<Result<Vec<_>>>()?.join(",")
        ))
    }
}
