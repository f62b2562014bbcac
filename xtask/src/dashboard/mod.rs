//! Grafana's dashboard as a program: [`panels`] is a table of what it shows; this file defines once how that is
//! rendered as JSON. `cargo xtask docs` writes deploy/observability/dashboards/emend.json; lint checks that it is up to
//! date and that Prometheus understands every query.
//!
//! The exceptions for Grafana's `dashboard-linter`, each with its reason, are in `.lint` beside the dashboard.

mod calls;
mod console;
mod edge;
mod mcp;
mod panels;
mod processes;
mod ratings;

use serde_json::{Value, json};

/// The file of the dashboard.
pub(crate) const PATH: &str = "deploy/observability/dashboards/emend.json";

/// The width of Grafana's grid.
const COLUMNS: u32 = 24;
/// The height of a panel, in units of the grid.
const HEIGHT: u32 = 7;
/// The height of a stat panel.
const STAT_HEIGHT: u32 = 4;
/// The height of a table.
const TABLE_HEIGHT: u32 = 5;

/// One row of the dashboard.
struct Row {
    title: &'static str,
    panels: &'static [Panel],
}

/// One panel.
struct Panel {
    title: &'static str,
    /// What it shows and what is normal, for first-time viewers.
    about: &'static str,
    kind: Kind,
    /// Grafana's name of the unit.
    unit: &'static str,
    /// Width in columns, of 24.
    width: u32,
    queries: &'static [Query],
}

/// A query and the legend of its series.
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
    /// Lines over time with exemplar traces.
    LinesWithTraces,
    /// Lines over time and a dashed upper bound that they should stay below. The axis reaches at least to the second
    /// figure.
    Against(f64, f64),
    /// Stacked areas over time.
    Areas(Series),
    /// The latest figure: yellow above the first bound, red above the second.
    Figure(f64, f64),
    /// The latest figure: yellow below the first bound, red below the second.
    Share(f64, f64),
    /// The latest figure, without bounds.
    Plain,
    /// A table of labels and the number of series that have them; the column has this name.
    Count(&'static str),
    /// Firing alerts, with the labels that locate them.
    Alerts,
}

/// How many series to expect in a panel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Series {
    /// A few, all of interest.
    Few,
    /// Several; hide those that are always zero.
    Idle,
    /// The same, but too many for a legend below the panel.
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
    let mut dashboard = json!({
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
            "titleFormat": "{{alertname}}", "textFormat": "{{severity}}", "tagKeys": "namespace,service,instance,sink,reason",
        }]},
        "panels": panels,
    });
    // Whether objects keep their order depends on the packages that are built beside this one.
    dashboard.sort_all_objects();
    format!("{dashboard:#}\n")
}

/// The query for the installations; the label is empty if there is only one.
const NAMESPACES: &str = "label_values(emend_build_info, namespace)";

/// Alerts firing in the selected installations and in those without a name.
const ALERTS: &str = r#"max by (severity, alertname, namespace, service, instance, sink, reason) (ALERTS{alertname=~"Emend.+", alertstate="firing", namespace=~"$namespace|"})"#;

/// When each firing alert began, in milliseconds, drawn as one thin line. Shading the whole time for which alerts fire
/// would overlap and hide the charts just when they are needed.
const ALERTED: &str = r#"1000 * ALERTS_FOR_STATE{alertname=~"Emend.+", namespace=~"$namespace|"} and ignoring (alertstate) ALERTS{alertstate="firing"}"#;

/// Every query as plain `PromQL`, with Grafana's variables replaced.
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
        // A table query returns one row per series; its timestamp is of no interest.
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
                    "sink",
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
                // Fixes the range, so that the current figure does not depend on the selected one: over a long range
                // one step would be an hour, and series gone since would still show.
                panel["timeFrom"] = json!("15m");
                panel["hideTimeOverride"] = json!(true);
            }
            Kind::Lines(_) | Kind::LinesWithTraces | Kind::Against(..) | Kind::Areas(_) => {}
        }
        panel
    }

    /// Where the legend is placed.
    fn legend(&self) -> &'static str {
        match self.kind {
            Kind::Lines(Series::Many) | Kind::Areas(Series::Many) => "right",
            _ => "bottom",
        }
    }

    /// Exceptions to [`Panel::field`] for single series or columns.
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
                // Otherwise the text for "nothing fires" would fill every cell whose label an alert lacks.
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
                // Without calls there is no ratio, which is no cause for alarm.
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
                // No outlines: that of a series at zero would be drawn on top of the others.
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
            // On one query only: the others have the same exemplars.
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
    fn lines_are_named_by_labels_that_their_query_returns() {
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
            // `$1` belongs to label_replace, not to Grafana.
            queries().all(|query| !query.replace(r#""$1""#, "").contains('$')),
            "{:?}",
            queries().collect::<Vec<_>>()
        );
        assert!(json().contains("$namespace"));
    }
}
