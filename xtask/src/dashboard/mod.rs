//! Grafana's dashboard as a program: what it shows is a table of panels in [`panels`], how that looks as JSON is told here
//! once. `cargo xtask docs` writes deploy/observability/dashboards/emend.json; lint sees to it that it is up to date and that
//! Prometheus understands every query.
//!
//! Whoever has Grafana's `dashboard-linter` finds its exceptions, each with the reason, in `.lint` beside the dashboard.
//!
//! It must know nothing of what the metrics mean.

mod panels;

use serde_json::{Value, json};

/// Where it is kept.
pub(crate) const PATH: &str = "deploy/observability/dashboards/emend.json";

/// Grafana's grid.
const COLUMNS: u32 = 24;
/// The height of a panel, in units of the grid.
const HEIGHT: u32 = 7;
/// The height of a panel that shows figures.
const STAT_HEIGHT: u32 = 4;
/// The height of a table.
const TABLE_HEIGHT: u32 = 5;

/// One row of the dashboard and what is in it.
struct Row {
    title: &'static str,
    panels: &'static [Panel],
}

/// One picture.
struct Panel {
    title: &'static str,
    /// What it shows and what is normal, for who sees it first.
    about: &'static str,
    kind: Kind,
    /// Grafana's name of the unit.
    unit: &'static str,
    /// Of 24 columns.
    width: u32,
    queries: &'static [Query],
}

/// A query and how what it answers is named.
struct Query {
    expr: &'static str,
    legend: &'static str,
}

const fn q(expr: &'static str, legend: &'static str) -> Query {
    Query { expr, legend }
}

enum Kind {
    /// Lines over time.
    Lines(Series),
    /// Lines over time with the traces of single measurements.
    LinesWithTraces,
    /// Lines over time and a bound, drawn dashed, that they should stay below; the axis reaches at least to the second figure.
    Against(f64, f64),
    /// Areas over time that add up.
    Areas(Series),
    /// The latest figure; beyond the first bound yellow, beyond the second red.
    Figure(f64, f64),
    /// The latest figure; below the first bound yellow, below the second red.
    Share(f64, f64),
    /// The latest figure, whatever it is.
    Plain,
    /// Labels, and how many series have them, by that name.
    Count(&'static str),
    /// Alerts, with the labels that tell where.
    Alerts,
}

/// What is to be expected of the series of a panel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Series {
    /// A few, all of interest.
    Few,
    /// Some, of which those that are zero all the time are of none.
    Idle,
    /// The same, and too many to be named below.
    Many,
}

/// The dashboard as JSON.
pub(crate) fn json() -> String {
    let mut panels = Vec::new();
    let mut y = 0;
    let mut id = 0;
    for row in panels::ROWS {
        id += 1;
        panels.push(json!({
            "id": id, "type": "row", "title": row.title, "collapsed": false, "panels": [],
            "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
        }));
        y += 1;
        let (mut x, mut tallest) = (0, 0);
        for panel in row.panels {
            if x + panel.width > COLUMNS {
                (x, y, tallest) = (0, y + tallest, 0);
            }
            id += 1;
            let height = panel.height();
            panels.push(panel.json(id, (x, y, height)));
            x += panel.width;
            tallest = tallest.max(height);
        }
        y += tallest;
    }
    let dashboard = json!({
        "uid": "emend", "title": "Emend", "tags": ["emend"], "schemaVersion": 39, "version": 1,
        "description": "Feedback and learning for search: calls, outbox, what is learned, streams and nodes, time to effect.",
        "editable": false, "graphTooltip": 1, "refresh": "30s", "timezone": "browser",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [
            {
                "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0,
                "current": {"text": "default", "value": "default"},
            },
            {
                "name": "namespace", "label": "Installation", "type": "query", "hide": 0,
                "datasource": {"type": "prometheus", "uid": "${datasource}"},
                "definition": NAMESPACES, "query": {"query": NAMESPACES, "refId": "namespaces"},
                "refresh": 2, "sort": 1, "includeAll": true, "allValue": ".*", "multi": true,
                "current": {"text": "All", "value": "$__all"},
            },
        ]},
        "annotations": {"list": [{
            "name": "Alerts", "enable": true, "iconColor": "red",
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "expr": ALERTED, "useValueForTime": true,
            "titleFormat": "{{alertname}}", "textFormat": "{{severity}}", "tagKeys": "namespace,service,instance,reason",
        }]},
        "panels": panels,
    });
    format!("{dashboard:#}\n")
}

/// Where the installations are found: a label that is empty where there is one only.
const NAMESPACES: &str = "label_values(emend_build_info, namespace)";

/// What fires, of the installations that are shown and of those that have no name.
const ALERTS: &str = r#"max by (severity, alertname, namespace, service, instance, reason) (ALERTS{alertname=~"Emend.+", alertstate="firing", namespace=~"$namespace|"})"#;

/// When what fires began, in milliseconds: one thin line for each. All the time for which they fire, painted over each other,
/// would hide what charts show, and just then.
const ALERTED: &str = r#"1000 * ALERTS_FOR_STATE{alertname=~"Emend.+", namespace=~"$namespace|"} and ignoring (alertstate) ALERTS{alertstate="firing"}"#;

/// Every query, in Prometheus' own language: without Grafana's variables.
pub(crate) fn queries() -> impl Iterator<Item = String> {
    let panels = panels::ROWS.iter().flat_map(|row| row.panels);
    let exprs = panels.flat_map(|panel| panel.queries).map(|query| query.expr);
    exprs
        .chain([ALERTED])
        .map(|expr| expr.replace("$namespace", ".*").replace("$__rate_interval", "5m"))
}

impl Panel {
    fn height(&self) -> u32 {
        match self.kind {
            Kind::Figure(..) | Kind::Share(..) | Kind::Plain => STAT_HEIGHT,
            Kind::Lines(_) | Kind::LinesWithTraces | Kind::Against(..) | Kind::Areas(_) => HEIGHT,
            Kind::Count(_) | Kind::Alerts => TABLE_HEIGHT,
        }
    }

    fn json(&self, id: u32, (x, y, height): (u32, u32, u32)) -> Value {
        let targets: Vec<Value> = self
            .queries
            .iter()
            .zip('A'..)
            .map(|(query, id)| self.target(query, id))
            .collect();
        let stat =
            json!({"reduceOptions": {"calcs": ["lastNotNull"]}, "graphMode": "area", "colorMode": "value"});
        let lines = json!({
            "legend": {"displayMode": "list", "placement": self.legend(), "showLegend": true},
            "tooltip": {"mode": "multi", "sort": "desc"},
        });
        let (name, options) = match self.kind {
            Kind::Lines(_) | Kind::LinesWithTraces | Kind::Against(..) | Kind::Areas(_) => {
                ("timeseries", lines)
            }
            Kind::Figure(..) | Kind::Share(..) | Kind::Plain => ("stat", stat),
            Kind::Count(_) | Kind::Alerts => ("table", json!({"showHeader": true})),
        };
        let mut panel = json!({
            "id": id, "type": name, "title": self.title, "description": self.about,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": height},
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "fieldConfig": {"defaults": self.field(), "overrides": self.overrides()},
            "options": options, "targets": targets,
        });
        // Prometheus answers a table with a row for each series; when it was asked is of no interest.
        let organize = |options: Value| json!([{"id": "organize", "options": options}]);
        match self.kind {
            Kind::Count(of) => {
                panel["transformations"] =
                    organize(json!({"excludeByName": {"Time": true}, "renameByName": {"Value": of}}));
            }
            Kind::Alerts => {
                let order = [
                    "severity",
                    "alertname",
                    "namespace",
                    "service",
                    "instance",
                    "reason",
                ];
                let order: serde_json::Map<_, _> = order
                    .iter()
                    .enumerate()
                    .map(|(place, label)| ((*label).to_owned(), json!(place)))
                    .collect();
                panel["transformations"] =
                    organize(json!({"excludeByName": {"Time": true, "Value": true}, "indexByName": order}));
            }
            Kind::Figure(..) | Kind::Share(..) | Kind::Plain => {
                // Now is the same in any range: a step of a long one would be an hour ago, and so would what has gone since.
                panel["timeFrom"] = json!("15m");
                panel["hideTimeOverride"] = json!(true);
            }
            Kind::Lines(_) | Kind::LinesWithTraces | Kind::Against(..) | Kind::Areas(_) => {}
        }
        panel
    }

    /// Where it is told what is what.
    fn legend(&self) -> &'static str {
        match self.kind {
            Kind::Lines(Series::Many) | Kind::Areas(Series::Many) => "right",
            _ => "bottom",
        }
    }

    /// What is not as in [`Panel::field`] of single series or columns.
    fn overrides(&self) -> Value {
        match self.kind {
            Kind::Lines(Series::Idle | Series::Many) | Kind::Areas(Series::Idle | Series::Many) => json!([{
                "matcher": {"id": "byValue", "options": {"reducer": "allIsZero", "op": "gte", "value": 0}},
                "properties": [{"id": "custom.hideFrom", "value": {"legend": true, "tooltip": true, "viz": true}}],
            }]),
            Kind::Alerts => json!([
                {
                    "matcher": {"id": "byName", "options": "severity"},
                    "properties": [
                        {"id": "custom.width", "value": 90},
                        {"id": "custom.cellOptions", "value": {"type": "color-text"}},
                        {"id": "mappings", "value": [{"type": "value", "options": {
                            "critical": {"color": "red", "index": 0}, "warning": {"color": "yellow", "index": 1},
                        }}]},
                    ],
                },
                {
                    "matcher": {"id": "byName", "options": "alertname"},
                    "properties": [{"id": "custom.width", "value": 240}],
                },
                // Else what is said where nothing fires would fill each cell of a label that an alert does not have.
                {
                    "matcher": {"id": "byType", "options": "string"},
                    "properties": [{"id": "noValue", "value": " "}],
                },
            ]),
            _ => json!([]),
        }
    }

    fn field(&self) -> Value {
        let steps = |colours: [&str; 3], bounds: [f64; 2]| {
            json!({"mode": "absolute", "steps": [
                {"color": colours[0], "value": null},
                {"color": colours[1], "value": bounds[0]},
                {"color": colours[2], "value": bounds[1]},
            ]})
        };
        let mut field = json!({"unit": self.unit});
        match self.kind {
            Kind::Figure(warn, alarm) => {
                field["thresholds"] = steps(["green", "yellow", "red"], [warn, alarm]);
            }
            Kind::Share(warn, alarm) => {
                field["thresholds"] = steps(["red", "yellow", "green"], [alarm, warn]);
                // Without calls there is no share of them, which is nothing to be alarmed about.
                field["mappings"] = json!([{"type": "special", "options": {
                    "match": "null+nan", "result": {"text": "none yet", "color": "text", "index": 0},
                }}]);
            }
            Kind::Plain => {
                field["thresholds"] =
                    json!({"mode": "absolute", "steps": [{"color": "text", "value": null}]});
            }
            Kind::Lines(_) | Kind::LinesWithTraces => {
                field["custom"] = json!({"lineWidth": 1, "fillOpacity": 0, "showPoints": "never"});
                field["min"] = json!(0);
            }
            Kind::Against(bound, top) => {
                field["custom"] = json!({
                    "lineWidth": 1, "fillOpacity": 0, "showPoints": "never", "axisSoftMax": top,
                    "thresholdsStyle": {"mode": "dashed"},
                });
                field["color"] = json!({"mode": "palette-classic"});
                field["thresholds"] = json!({"mode": "absolute", "steps": [
                    {"color": "transparent", "value": null}, {"color": "red", "value": bound},
                ]});
                field["min"] = json!(0);
            }
            Kind::Areas(_) => {
                // Without lines: that of a series that is zero would lie on top of the others.
                field["custom"] = json!({
                    "lineWidth": 0, "fillOpacity": 70, "showPoints": "never", "stacking": {"mode": "normal", "group": "A"},
                });
                field["min"] = json!(0);
            }
            Kind::Count(_) => {}
            Kind::Alerts => field["noValue"] = json!("Nothing fires"),
        }
        field
    }

    fn target(&self, query: &Query, id: char) -> Value {
        let mut target = json!({
            "refId": id.to_string(), "expr": query.expr, "legendFormat": query.legend,
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
        });
        match self.kind {
            // Of one query: the others have the same.
            Kind::LinesWithTraces if id == 'A' => target["exemplar"] = json!(true),
            Kind::Count(_) | Kind::Alerts => {
                target["instant"] = json!(true);
                target["format"] = json!("table");
            }
            _ => {}
        }
        target
    }
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, json, panels::ROWS, queries};

    #[test]
    fn panels_fill_their_rows_and_say_what_they_show() {
        for row in ROWS {
            let width: u32 = row.panels.iter().map(|panel| panel.width).sum();
            assert_eq!(width % COLUMNS, 0, "{} leaves a gap", row.title);
            for panel in row.panels {
                assert!(
                    !panel.about.is_empty() && !panel.queries.is_empty(),
                    "{}",
                    panel.title
                );
            }
        }
    }

    #[test]
    fn lines_are_named_by_labels_that_their_query_leaves() {
        let queries = ROWS
            .iter()
            .flat_map(|row| row.panels)
            .flat_map(|panel| panel.queries);
        for query in queries {
            let named = query
                .legend
                .split("{{")
                .skip(1)
                .map(|rest| rest.split("}}").next());
            let kept: Vec<&str> = query
                .expr
                .split(" by (")
                .skip(1)
                .filter_map(|rest| rest.split(')').next())
                .flat_map(|labels| labels.split(", "))
                .chain(query.expr.contains(r#", "short", "$1", "#).then_some("short"))
                .collect();
            let sums_up = ["sum", "max", "min", "count"]
                .iter()
                .any(|operator| query.expr.contains(&format!("{operator}(")));
            for label in named.flatten() {
                let left = kept.contains(&label) || (kept.is_empty() && !sums_up);
                assert!(left, "{label} is not in what {} answers", query.expr);
            }
        }
    }

    #[test]
    fn queries_have_no_variables_left_and_the_json_has() {
        assert!(
            // What label_replace found is none of Grafana's.
            queries().all(|query| !query.replace(r#""$1""#, "").contains('$')),
            "{:?}",
            queries().collect::<Vec<_>>()
        );
        assert!(json().contains("$namespace"));
    }
}
