//! What pdbmux reads from a query: its projection, never its meaning.

/// One column of an `extract` or an item of a `group_by`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// A column by its name, dotted paths included.
    Plain(String),
    /// `["function", name, args...]`.
    Function {
        /// Name of the function, as written.
        name: String,
        /// Its arguments, as written.
        args: Vec<String>,
    },
}

/// The outermost `extract` of a query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extract {
    /// The projected columns, in their order.
    pub columns: Vec<Column>,
    /// The items of its `group_by`, if there is one.
    pub group_by: Vec<Column>,
}
