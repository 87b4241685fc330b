//! An `order_by` applied to the records of one entity.

use std::cmp::Ordering;

use super::column::place;
use super::{ColumnKind, Direction, OrderBy, column_kind, compare_values};
use crate::json::{Members, unquote};

/// How the records of one entity are ordered, and which of their members that takes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordOrder {
    members: Vec<String>,
    columns: Vec<Column>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    /// Index of the member that holds the column.
    member: usize,
    /// The member of that object, where the column lies one level down.
    inner: Option<&'static str>,
    kind: ColumnKind,
    direction: Direction,
}

impl RecordOrder {
    /// Applies `order_by` to records of `entity`, spelled as for [`column_kind`].
    pub fn new(order_by: &OrderBy, entity: &str) -> Self {
        let mut members: Vec<String> = Vec::new();
        let mut columns = Vec::with_capacity(order_by.fields.len());
        for field in &order_by.fields {
            let (name, inner) = place(entity, &field.field);
            let known = members.iter().position(|member| member == name);
            let member = known.unwrap_or_else(|| {
                members.push(name.to_owned());
                members.len() - 1
            });
            columns.push(Column {
                member,
                inner,
                kind: column_kind(entity, &field.field),
                direction: field.direction,
            });
        }
        Self { members, columns }
    }

    /// The members that a record is read for, to be given to [`crate::json::Records`]. No name
    /// comes twice; the functions that compare ask for a member by its index in here.
    pub fn members(&self) -> &[String] {
        &self.members
    }

    /// Compares two records. `a` and `b` give a member's raw value by its index, or `None` if the
    /// record lacks it.
    ///
    /// A record that lacks a member comes first, in either direction (R145, ruling 6): this only
    /// happens where a projection left the column out, so it has no value to be reversed. A `null`
    /// follows the direction.
    pub fn compare<'b>(
        &self,
        a: impl Fn(usize) -> Option<&'b [u8]>,
        b: impl Fn(usize) -> Option<&'b [u8]>,
    ) -> Ordering {
        let mut orders = self.columns.iter().map(|column| {
            match (
                column.value(a(column.member)),
                column.value(b(column.member)),
            ) {
                (None, None) => Ordering::Equal,
                (None, Some(_)) => Ordering::Less,
                (Some(_), None) => Ordering::Greater,
                (Some(a), Some(b)) => column.compare(a, b),
            }
        });
        orders
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// Sorts `records`; ties keep their order (R144). `member` gives a record's raw value by the
    /// member's index.
    pub fn sort<'b, T>(&self, records: &mut [T], member: impl Fn(&T, usize) -> Option<&'b [u8]>) {
        records.sort_by(|a, b| self.compare(|i| member(a, i), |i| member(b, i)));
    }
}

impl Column {
    /// The column's value in the member that holds it.
    fn value<'b>(&self, member: Option<&'b [u8]>) -> Option<&'b [u8]> {
        let Some(name) = self.inner else {
            return member;
        };
        let object = member?;
        let mut members = Members::new(object).map_while(Result::ok);
        let (_, value) =
            members.find(|(key, _)| unquote(&object[key.clone()]).is_some_and(|k| k == name))?;
        Some(&object[value])
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let order = compare_values(self.kind, a, b);
        match self.direction {
            Direction::Asc => order,
            Direction::Desc => order.reverse(),
        }
    }
}
