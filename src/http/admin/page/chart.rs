//! The history as lines. Drawn 1000 by 100, to be stretched; the texts stand beside it.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::history::History;
use super::{colour, number};
use crate::drift::span;

const WIDTH: u64 = 1_000;
const HEIGHT: u64 = 100;

/// What the template draws.
pub(super) struct Chart {
    /// Texts of the vertical axis, from the top.
    pub(super) ys: Vec<String>,
    /// Where its lines are.
    pub(super) grid: Vec<u64>,
    /// Texts of the horizontal axis.
    pub(super) xs: Vec<String>,
    pub(super) lines: Vec<Line>,
}

pub(super) struct Line {
    pub(super) name: String,
    pub(super) colour: usize,
    /// Of the polyline.
    pub(super) points: String,
    pub(super) last: String,
    /// Against the beginning.
    pub(super) change: String,
}

impl Chart {
    /// `None` while there is nothing to draw.
    pub(super) fn of(history: &History) -> Option<Self> {
        let samples: Vec<_> = history.samples().collect();
        let (first, last) = (samples.first()?, samples.last()?);
        let most = samples.iter().flat_map(|sample| &sample.owned).max();
        let (step, steps) = axis(*most?);
        let top = step * steps;
        let (from, to) = (first.at.as_second(), last.at.as_second());
        // A single sample is a line too.
        let length = u64::try_from(to - from).unwrap_or(0);
        let x = |at: Timestamp| {
            let since = u64::try_from(at.as_second() - from).unwrap_or(0);
            (since * WIDTH).checked_div(length).unwrap_or(0)
        };
        let lines = history.names().iter().enumerate().map(|(at, name)| {
            let owned = |sample: &super::history::Sample| sample.owned.get(at).copied();
            let mut points = String::new();
            for sample in &samples {
                let owned = owned(sample).unwrap_or(0);
                // Writing to a String cannot fail.
                let _ = write!(points, "{},{} ", x(sample.at), y(owned, top));
            }
            if length == 0 {
                let _ = write!(points, "{WIDTH},{}", y(owned(last).unwrap_or(0), top));
            }
            let (began, now) = (owned(first).unwrap_or(0), owned(last).unwrap_or(0));
            Line {
                name: name.clone(),
                colour: colour(at),
                points: points.trim_end().to_owned(),
                last: number(now),
                change: change(began, now, last.at.duration_since(first.at)),
            }
        });
        Some(Self {
            ys: (0..=steps).rev().map(|at| number(at * step)).collect(),
            grid: (0..=steps).map(|at| at * HEIGHT / steps).collect(),
            xs: times(first.at, last.at),
            lines: lines.collect(),
        })
    }
}

/// From the top.
fn y(owned: u64, top: u64) -> u64 {
    HEIGHT - owned * HEIGHT / top
}

/// How far the lines of the axis are apart, and how many there are above 0: at most five, and as few
/// as hold `most`.
fn axis(most: u64) -> (u64, u64) {
    let mut unit = 1;
    loop {
        for step in [unit, 2 * unit, 5 * unit] {
            if step * 5 >= most {
                return (step, most.div_ceil(step).max(1));
            }
        }
        unit *= 10;
    }
}

fn change(began: u64, now: u64, time: jiff::SignedDuration) -> String {
    if time.as_secs() == 0 {
        return String::new();
    }
    let (sign, by) = if now < began {
        ("−", began - now)
    } else {
        ("+", now - began)
    };
    match by {
        0 => format!("as {} ago", span(time)),
        by => format!("{sign}{} in {}", number(by), span(time)),
    }
}

/// Three times, or one.
fn times(from: Timestamp, to: Timestamp) -> Vec<String> {
    let text = |second: i64| {
        let at = Timestamp::from_second(second).unwrap_or(to);
        at.strftime("%H:%M").to_string()
    };
    let (from, to) = (from.as_second(), to.as_second());
    let mut times: Vec<_> = [from, i64::midpoint(from, to), to].map(text).into();
    times.dedup();
    times
}
