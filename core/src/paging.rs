//! limit, offset and order_by: read, pushed down, applied to the merged set.
