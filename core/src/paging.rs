//! limit, offset and order_by: read, pushed down, applied to the merged set.
//!
//! A request's [`OrderBy`] and [`Window`] say what the client wants. [`RecordOrder`] is that
//! `order_by` on the records of one entity: which members it needs and how two records compare, as
//! the PostgreSQL behind a PuppetDB would compare them with text taken byte by byte (rulings 6-8).

mod column;
mod compare;
mod error;
mod number;
mod order_by;
mod record_order;
mod window;

pub use column::{ColumnKind, column_kind};
pub use compare::compare_values;
pub use error::PagingError;
pub use order_by::{Direction, OrderBy, OrderField};
pub use record_order::RecordOrder;
pub use window::{MAX_ROWS, Window, parse_limit, parse_offset};
