//! The root route, `/pdb/query/v4`: the query itself names the entity.

use serde_json::Value;

use super::{Answer, listed};
use crate::estate::Estate;
use crate::fault::Fault;
use crate::order::{self, Direction, Order};
use crate::params::Params;
use crate::schema::Entity;
use crate::select::{self, Inactive, Selection, Window};

impl Estate {
    /// `["from", entity, query?, paging...]`; parameters of the request beat paging in the query.
    pub(super) fn root(&self, params: &Params) -> Result<Answer, Fault> {
        let missing = "Missing required query parameter 'query'";
        let text = params.text("query").unwrap_or_default().trim();
        if text.is_empty() {
            return Err(Fault::Refused(missing.to_owned()));
        }
        if !text.starts_with('[') {
            return Err(Fault::unsupported("PQL"));
        }
        let ast = params.query()?.unwrap_or_default();
        let clause = ast.as_array().map_or(&[][..], Vec::as_slice);
        let [Value::String(from), Value::String(name), rest @ ..] = clause else {
            return Err(not_from());
        };
        if from != "from" {
            return Err(not_from());
        }
        let entity = Entity::named(name)
            .ok_or_else(|| Fault::Refused(format!("Invalid entity '{name}' in query")))?;
        let is_paging =
            |it: &Value| matches!(it[0].as_str(), Some("limit" | "offset" | "order_by"));
        let (query, paging) = match rest.split_first() {
            Some((query, paging)) if !is_paging(query) => (Some(query), paging),
            _ => (None, rest),
        };
        let paging = Paging::parse(entity, paging)?;
        let inactive = match entity {
            Entity::Environments => Inactive::Shown,
            Entity::FactNames => {
                let text = "ERROR: column fact_names.certname does not exist";
                return Err(Fault::Broken(text.to_owned()));
            }
            _ => Inactive::Hidden,
        };
        let window = params.window()?;
        let given = |name| params.text(name).is_some();
        let selection = Selection {
            entity,
            narrowed: Vec::new(),
            inactive,
            query,
            orders: params.orders(entity)?.unwrap_or(paging.orders),
            window: Window {
                limit: if given("limit") {
                    window.limit
                } else {
                    paging.window.limit
                },
                offset: if given("offset") {
                    window.offset
                } else {
                    paging.window.offset
                },
            },
        };
        Ok(listed(&select::select(self, selection)?, params))
    }
}

/// The paging clauses of a `from`.
#[derive(Default)]
struct Paging {
    orders: Vec<Order>,
    window: Window,
}

impl Paging {
    fn parse(entity: Entity, clauses: &[Value]) -> Result<Self, Fault> {
        let mut paging = Self::default();
        for clause in clauses {
            let number = || clause[1].as_u64().and_then(|it| usize::try_from(it).ok());
            match (clause[0].as_str(), &clause[1]) {
                (Some("limit"), _) if number().is_some() => paging.window.limit = number(),
                (Some("offset"), _) if let Some(offset) = number() => paging.window.offset = offset,
                (Some("order_by"), Value::Array(items)) => {
                    let orders = items.iter().map(|item| in_query_order(entity, item));
                    paging.orders = orders.collect::<Result<_, _>>()?;
                }
                _ => return Err(Fault::unsupported(clause)),
            }
        }
        Ok(paging)
    }
}

fn in_query_order(entity: Entity, item: &Value) -> Result<Order, Fault> {
    let (name, direction) = match item {
        Value::String(name) => (name, Direction::Ascending),
        Value::Array(pair) => match pair.as_slice() {
            [Value::String(name)] => (name, Direction::Ascending),
            [Value::String(name), Value::String(word)] if word == "asc" => {
                (name, Direction::Ascending)
            }
            [Value::String(name), Value::String(word)] if word == "desc" => {
                (name, Direction::Descending)
            }
            _ => return Err(Fault::unsupported(item)),
        },
        _ => return Err(Fault::unsupported(item)),
    };
    let field = order::orderable(entity, name)?;
    Ok(Order { field, direction })
}

fn not_from() -> Fault {
    let text = r#"This query must be of the form ["from", <entity>, (<optional-query>)]."#;
    Fault::Refused(text.to_owned())
}
