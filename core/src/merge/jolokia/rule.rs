//! By which rule numbers combine, told by their names.

use super::tree::Object;

/// How values of one name from several backends become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The first backend's.
    First,
    /// Added up, leaving out a `-1` that stands for "unknown" (R250, ruling 10).
    Sum,
    /// The least (R251).
    Min,
    /// The greatest (R252).
    Max,
    /// The arithmetic mean, every backend weighing the same (R253).
    Mean,
    /// The same for a gauge whose values may be ratios and are unknown below zero (T70-T72).
    GaugeMean,
}

/// Where a value stands in an answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    /// In a listing of MBeans: nothing there is a measurement.
    Listing,
    /// In an object whose keys are MBeans, as a read by pattern gives it.
    MBeans,
    /// In an MBean.
    MBean {
        nature: Nature,
        /// The innermost name: an attribute's, or a key's inside it.
        name: &'a str,
    },
}

/// What an MBean, or an object inside one, says of all its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nature {
    Plain,
    /// A gauge that is an average or a percentage (T70).
    Average,
    /// Figures of a stretch of memory: their `max` is a size like its siblings, not the greatest
    /// of some samples. Were it not added, `used` could exceed it (T73).
    Memory,
}

impl<'a> Place<'a> {
    /// The value called `name` in `mbean`. An empty name is the whole MBean.
    pub(super) fn of_mbean(mbean: &str, name: &'a str) -> Self {
        let nature = Nature::of(mbean);
        Self::MBean { nature, name }
    }

    /// The place with what `objects`, found there, tell of their members. Those with `used` and
    /// `committed` are JVM memory figures, whatever MBean they stand in.
    pub(super) fn inside(self, objects: &[&Object<'_>]) -> Self {
        let memory = |object: &&Object<'_>| object.has("used") && object.has("committed");
        match self {
            Self::MBean {
                nature: Nature::Plain,
                name,
            } if objects.iter().any(memory) => Self::MBean {
                nature: Nature::Memory,
                name,
            },
            place => place,
        }
    }

    /// The place of the member `key` of an object that stands here.
    pub(super) fn at(self, key: &'a str) -> Self {
        match self {
            Self::Listing => Self::Listing,
            Self::MBeans => Self::of_mbean(key, ""),
            Self::MBean { nature, .. } => Self::MBean { nature, name: key },
        }
    }

    /// How values that stand here combine.
    pub(super) fn rule(self) -> Rule {
        match self {
            Self::Listing | Self::MBeans => Rule::First,
            Self::MBean { nature, name } => Rule::of(nature, name),
        }
    }
}

impl Rule {
    /// Names match whatever their case (R254).
    fn of(nature: Nature, name: &str) -> Self {
        match (name.to_ascii_lowercase().as_str(), nature) {
            ("max", Nature::Memory) => Self::Sum,
            ("min", _) => Self::Min,
            ("max" | "uptime" | "starttime", _) => Self::Max,
            ("mean" | "median" | "stddev", _) => Self::Mean,
            (name, _) if name.ends_with("percentile") => Self::Mean,
            (_, Nature::Average) => Self::GaugeMean,
            (_, Nature::Plain | Nature::Memory) => Self::Sum,
        }
    }
}

impl Nature {
    fn of(mbean: &str) -> Self {
        let (domain, properties) = mbean.split_once(':').unwrap_or_default();
        let property = |wanted: &str| {
            properties
                .split(',')
                .filter_map(|property| property.split_once('='))
                .find(|(key, _)| *key == wanted)
                .map_or("", |(_, value)| value.trim_matches('"'))
        };
        let name = property("name").to_ascii_lowercase();
        match (domain, property("type")) {
            ("java.lang", "Memory" | "MemoryPool") => Self::Memory,
            _ if name.starts_with("avg-") || name.starts_with("pct-") => Self::Average,
            _ => Self::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r250_to_r254_the_name_of_the_attribute_gives_the_rule() {
        for (names, rule) in [
            (
                &[
                    "Value",
                    "Count",
                    "MeanRate",
                    "OneMinuteRate",
                    "MinTime",
                    "maxima",
                    "",
                    "used",
                ][..],
                Rule::Sum,
            ),
            (&["Min", "min", "MIN"], Rule::Min),
            (
                &["Max", "max", "Uptime", "uptime", "StartTime", "startTime"],
                Rule::Max,
            ),
            (
                &[
                    "Mean",
                    "mean",
                    "Median",
                    "StdDev",
                    "STDDEV",
                    "50thPercentile",
                    "999thpercentile",
                ],
                Rule::Mean,
            ),
        ] {
            for name in names {
                assert_eq!(Place::of_mbean("a:b=c", name).rule(), rule, "{name}");
            }
        }
    }

    #[test]
    fn t70_gauges_that_are_averages_by_their_own_name_take_the_mean() {
        for (mbean, rule) in [
            (
                "puppetlabs.puppetdb.population:name=avg-resources-per-node",
                Rule::GaugeMean,
            ),
            (
                "puppetlabs.puppetdb.population:name=pct-resource-dupes",
                Rule::GaugeMean,
            ),
            ("a:type=default,name=\"PCT-x\"", Rule::GaugeMean),
            ("puppetlabs.puppetdb.population:name=num-nodes", Rule::Sum),
            ("a:name=num-avg-x", Rule::Sum),
            ("a:type=avg-x,name=y", Rule::Sum),
            ("avg-x:name=y", Rule::Sum),
            ("name=avg-x", Rule::Sum),
            ("", Rule::Sum),
        ] {
            assert_eq!(Place::of_mbean(mbean, "Value").rule(), rule, "{mbean}");
        }
        let gauge = Place::of_mbean("a:name=avg-x", "Max").rule();
        assert_eq!(gauge, Rule::Max, "a name with a rule of its own keeps it");
    }

    #[test]
    fn t73_the_max_of_memory_is_a_size() {
        for (mbean, rule) in [
            ("java.lang:type=Memory", Rule::Sum),
            ("java.lang:name=CodeHeap,type=MemoryPool", Rule::Sum),
            ("java.lang:type=Runtime", Rule::Max),
            ("x:type=Memory", Rule::Max),
        ] {
            assert_eq!(Place::of_mbean(mbean, "max").rule(), rule, "{mbean}");
        }
    }

    #[test]
    fn in_a_read_by_pattern_each_mbean_speaks_for_its_own_numbers() {
        let inside = |mbean, name| Place::MBeans.at(mbean).at(name).rule();
        assert_eq!(inside("a:name=avg-x", "Value"), Rule::GaugeMean);
        assert_eq!(inside("a:name=num-x", "Value"), Rule::Sum);
        assert_eq!(Place::MBeans.rule(), Rule::First);
        assert_eq!(Place::Listing.at("Max").rule(), Rule::First);
    }
}
