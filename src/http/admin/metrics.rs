//! `/metrics`, for Prometheus. Clients are never told: theirs is PuppetDB's.

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use pdbmux_core::health::State;

use super::super::App;
use super::super::body::Body;
use super::super::cached;
use super::super::respond;
use crate::metrics::{Format, Sample, Stand};
use crate::upstream::Standing;

/// The metrics, as text of the kind that these headers name.
pub(super) async fn answer(app: &App, headers: &HeaderMap) -> Response<Body> {
    let format = format(headers);
    let sample = sample(app).await;
    let Ok(text) = app.metrics().text(&sample, format) else {
        return respond::internal_error();
    };
    let mut response = respond::text(StatusCode::OK, text);
    let media_type = HeaderValue::from_static(format.media_type());
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// What the metrics show that is not counted.
async fn sample(app: &App) -> Sample<'_> {
    let upstream = app.upstream();
    let backends = upstream.backends().iter();
    let members = upstream.members();
    let versions = upstream.members();
    let versions = versions.filter_map(|it| Some((it.name.as_str(), it.version()?)));
    let states = members.map(|it| (it.name.as_str(), stand(&upstream.standing_of(it.id))));
    Sample {
        backends: backends.map(|it| it.name.as_str()).collect(),
        states: states.collect(),
        versions: versions.collect(),
        cache: cached::held(app.cache.as_deref()).await,
        memory: upstream.memory(),
        certificates: app.certificates(),
    }
}

/// What the probes say of one that is down goes before what requests do.
fn stand(standing: &Standing) -> Stand {
    match (standing.state, standing.ejected_until) {
        (State::Unhealthy, _) | (_, None) => Stand::Probed(standing.state),
        (_, Some(_)) => Stand::Ejected,
    }
}

/// Prometheus names OpenMetrics where it takes it; what it would rather have is the newer one anyway.
fn format(headers: &HeaderMap) -> Format {
    let mut lines = headers.get_all(ACCEPT).iter();
    let names_it = |line: &HeaderValue| {
        let line = line.to_str().unwrap_or_default();
        line.contains("application/openmetrics-text")
    };
    if lines.any(names_it) {
        Format::OpenMetrics
    } else {
        Format::Text
    }
}
