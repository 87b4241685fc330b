//! From a request to an answer, without any I/O.

mod root;

use serde_json::{Value, json};

use crate::counts;
use crate::estate::Estate;
use crate::extract::Projection;
use crate::fault::Fault;
use crate::filter::Filter;
use crate::order::{self, Direction, Order};
use crate::params::{Accepts, Params, Timeout};
use crate::render::{self, Cell, Style};
use crate::route::{Parent, Route, Status};
use crate::schema::Entity;
use crate::select::{self, Inactive, Selected, Selection};
use crate::status;
use crate::time::Timestamp;

const JSON: &str = "application/json;charset=utf-8";
const TEXT: &str = "text/plain;charset=utf-8";
const HTML: &str = "text/html;charset=utf-8";

/// What of a request decides the answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// The method, in capitals.
    pub method: &'a str,
    /// The raw path, percent-encoding kept.
    pub path: &'a str,
    /// The raw query string, without the `?`; empty if there is none.
    pub query: &'a str,
    /// The `Accept` header.
    pub accept: Option<&'a str>,
    /// The `Content-Type` header.
    pub content_type: Option<&'a str>,
    /// The whole body.
    pub body: &'a [u8],
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The `Content-Type`, if the answer has one.
    pub content_type: Option<&'static str>,
    /// The `X-Records` header: the count of rows before paging, if it was asked for.
    pub total: Option<usize>,
    /// The `Location` header of a redirect: a path.
    pub location: Option<String>,
    /// The body.
    pub body: String,
}

impl Estate {
    /// What a PuppetDB that holds this estate answers. `now` is told by `/pdb/meta/v1/server-time`
    /// and stamps the metrics; no row depends on it.
    pub fn answer(&self, request: &Request<'_>, now: Timestamp) -> Answer {
        let route = Route::parse(request.path);
        let answer = self
            .refusal(request, &route)
            .map_or_else(|| self.serve(request, &route, now), Ok);
        answer.unwrap_or_else(Answer::from)
    }

    /// What is answered without a look at the data: no such route, or no such way to ask.
    fn refusal(&self, request: &Request<'_>, route: &Route) -> Option<Answer> {
        match route {
            Route::Outside => return Some(Answer::new(404, Some(HTML), "<h1>Not Found</h1>")),
            // Before 8.6 every unknown path below /pdb led to the dashboard.
            Route::Unknown if !self.is_at_least(8, 6) => {
                let location = Some(format!("{}/dashboard/index.html", request.path));
                let answer = Answer::new(302, None, "");
                return Some(Answer { location, ..answer });
            }
            Route::Unknown => return Some(Answer::new(404, Some(HTML), "Not Found")),
            Route::Status(_) => return None,
            Route::Root
            | Route::Rows { .. }
            | Route::Record(_)
            | Route::ReportPart { .. }
            | Route::EventCounts
            | Route::Version
            | Route::ServerTime
            | Route::Unserved => {}
        }
        if !request.accept.is_none_or(admits_json) {
            let message = "accept header must include application/json";
            return Some(self.unusable(406, "not-acceptable", message));
        }
        if !takes_any_method(route) && !matches!(request.method, "GET" | "POST") {
            let text = "PuppetDB queries must be made via GET/POST";
            return Some(Answer::new(400, Some(TEXT), text));
        }
        let media = request.content_type.and_then(|it| it.split(';').next());
        if request.method == "POST" && media.is_some_and(|it| it.trim() != "application/json") {
            let message = "content type must be application/json";
            return Some(self.unusable(415, "unsupported-type", message));
        }
        None
    }

    /// A media type that PuppetDB does not speak: told in JSON since 8.8, in text before.
    fn unusable(&self, status: u16, kind: &str, message: &str) -> Answer {
        if self.is_at_least(8, 8) {
            let body = compact(&json!({"kind": kind, "msg": message})).body;
            Answer::new(status, Some(JSON), body)
        } else {
            Answer::new(status, Some(TEXT), message)
        }
    }

    fn serve(&self, request: &Request<'_>, route: &Route, now: Timestamp) -> Result<Answer, Fault> {
        let params = match route {
            Route::Status(_) => Params::default(),
            _ => params(request)?,
        };
        let timeout = Timeout::of(self);
        let check = |accepts| params.check(accepts, timeout);
        match route {
            Route::Root => {
                check(Accepts::Paging)?;
                self.root(&params)
            }
            Route::Rows {
                entity,
                parent,
                narrowed,
            } => {
                check(if *entity == Entity::Events {
                    Accepts::Events
                } else {
                    Accepts::Paging
                })?;
                self.collection(*entity, parent.as_ref(), narrowed, &params)
            }
            Route::Record(parent) => {
                check(match parent.entity {
                    Entity::Environments => Accepts::Record,
                    _ => Accepts::Paging,
                })?;
                // Checked for shape; one record has nothing to page or filter.
                params.query()?;
                params.window()?;
                let projection = Projection::all(parent.entity);
                let row = projection.row(&self.record(parent)?);
                Ok(Answer::json(render::record(&row)))
            }
            Route::ReportPart { hash, column } => {
                check(Accepts::Record)?;
                let parent = Parent {
                    entity: Entity::Reports,
                    key: hash.clone(),
                };
                let data = self.record(&parent)?[column]["data"].take();
                Ok(Answer::json(render::stored_text(&data)))
            }
            Route::EventCounts => {
                check(Accepts::Counts)?;
                Ok(listed(&counts::event_counts(self, &params)?, &params))
            }
            Route::Version => {
                check(Accepts::Nothing)?;
                Ok(pretty(&json!({"version": self.version()})))
            }
            Route::ServerTime => {
                check(Accepts::Nothing)?;
                Ok(pretty(&json!({"server_time": now.to_string()})))
            }
            Route::Status(status) => Ok(self.status(status, now)),
            Route::Unserved | Route::Unknown | Route::Outside => {
                Err(Fault::unsupported(request.path))
            }
        }
    }

    fn status(&self, route: &Status, now: Timestamp) -> Answer {
        match route {
            Status::Services => compact(&status::services(self)),
            Status::Service(name) => match status::service(self, name) {
                Some(service) => compact(&service),
                None => Answer {
                    status: 404,
                    ..compact(&json!({
                        "kind": "service-not-found",
                        "msg": format!("No status information found for service {name}"),
                    }))
                },
            },
            Status::Simple => Answer::new(200, Some(TEXT), "running"),
            Status::MetricList => compact(&status::metric_list(self, now)),
            Status::Metric { mbean, attribute } => {
                let metric = status::metric(self, mbean, attribute.as_deref(), now);
                let answer = compact(&metric);
                // Jolokia 1.x writes `\/`; inside JSON a slash stands in strings only.
                let body = answer.body.replace('/', "\\/");
                Answer { body, ..answer }
            }
        }
    }

    fn collection(
        &self,
        entity: Entity,
        parent: Option<&Parent>,
        narrowed: &[(&'static str, String)],
        params: &Params,
    ) -> Result<Answer, Fault> {
        let mut filters = Vec::new();
        if let Some(parent) = parent {
            self.record(parent)?;
            filters.push(Filter::column_is(entity, "certname", &parent.key)?);
        }
        for (column, value) in narrowed {
            filters.push(Filter::column_is(entity, column, value)?);
        }
        let inactive = if entity.hides_inactive() {
            Inactive::Hidden
        } else {
            Inactive::Shown
        };
        let query = params.query()?;
        let orders = match params.orders(entity)? {
            None if entity == Entity::FactNames => vec![by_name(entity)?],
            orders => orders.unwrap_or_default(),
        };
        let selection = Selection {
            entity,
            narrowed: filters,
            inactive,
            query: query.as_ref(),
            orders,
            window: params.window()?,
        };
        let selected = select::select(self, selection)?;
        if entity != Entity::FactNames {
            return Ok(listed(&selected, params));
        }
        let names = selected.rows.iter().filter_map(|row| match row.as_slice() {
            [(_, Cell::Json(name))] => Some(name.clone()),
            _ => None,
        });
        let body = render::value(&names.collect(), params.style());
        Ok(Answer {
            body,
            ..listed(&selected, params)
        })
    }

    /// The record of this key, active or not.
    fn record(&self, parent: &Parent) -> Result<Value, Fault> {
        let (kind, column) = parent.entity.key();
        let records = self.rows(parent.entity);
        let found = records.iter().find(|it| it[column] == parent.key);
        found.cloned().ok_or_else(|| Fault::Absent {
            kind,
            id: parent.key.clone(),
        })
    }
}

fn by_name(entity: Entity) -> Result<Order, Fault> {
    let field = order::orderable(entity, "name")?;
    let direction = Direction::Ascending;
    Ok(Order { field, direction })
}

fn params(request: &Request<'_>) -> Result<Params, Fault> {
    if request.method != "POST" {
        return Params::from_form(request.query.as_bytes());
    }
    // PuppetDB passes such parameters on unread, and its database then fails on their type.
    if !request.query.is_empty() {
        let text = "ERROR: parameters of the URL and of the body are mixed";
        return Err(Fault::Broken(text.to_owned()));
    }
    Params::from_body(request.body)
}

/// `Accept` is compared token by token, parameters included.
fn admits_json(accept: &str) -> bool {
    accept
        .split(',')
        .any(|token| matches!(token.trim(), "*/*" | "application/*" | "application/json"))
}

fn takes_any_method(route: &Route) -> bool {
    match route {
        Route::ReportPart { .. } | Route::Version | Route::ServerTime => true,
        Route::Record(parent) => parent.entity == Entity::Environments,
        _ => false,
    }
}

fn listed(selected: &Selected, params: &Params) -> Answer {
    let total = params.is_true("include_total").then_some(selected.total);
    let body = render::rows(&selected.rows, params.style());
    Answer {
        total,
        ..Answer::json(body)
    }
}

fn pretty(value: &Value) -> Answer {
    Answer::json(render::value(value, Style::Pretty))
}

fn compact(value: &Value) -> Answer {
    Answer::json(render::value(value, Style::Compact))
}

impl Answer {
    fn new(status: u16, content_type: Option<&'static str>, body: impl Into<String>) -> Self {
        Self {
            status,
            content_type,
            total: None,
            location: None,
            body: body.into(),
        }
    }

    fn json(body: String) -> Self {
        Self::new(200, Some(JSON), body)
    }
}

impl From<Fault> for Answer {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(text) => Self::new(400, Some(TEXT), text),
            Fault::Broken(text) => Self::new(500, Some(TEXT), text),
            Fault::Absent { kind, id } => Self {
                status: 404,
                ..pretty(&json!({"error": format!("No information is known about {kind} {id}")}))
            },
        }
    }
}
