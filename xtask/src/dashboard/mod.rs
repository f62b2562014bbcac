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
    Lines,
    /// Lines over time with the traces of single measurements.
    LinesWithTraces,
    /// Areas over time that add up.
    Areas,
    /// The latest figure; beyond the first bound yellow, beyond the second red.
    Figure(f64, f64),
    /// The latest figure; below the first bound yellow, below the second red.
    Share(f64, f64),
    /// The latest figure, whatever it is.
    Plain,
    /// Figures with their labels.
    Table,
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
            {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0},
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
            "expr": ALERTS,
            "titleFormat": "{{alertname}}", "textFormat": "{{severity}} {{service}}",
        }]},
        "panels": panels,
    });
    format!("{dashboard:#}\n")
}

/// Where the installations are found: a label that is empty where there is one only.
const NAMESPACES: &str = "label_values(emend_build_info, namespace)";

/// What fires, of the installations that are shown and of those that have no name.
const ALERTS: &str = r#"ALERTS{alertname=~"Emend.+", alertstate="firing", namespace=~"$namespace|"}"#;

/// Every query, in Prometheus' own language: without Grafana's variables.
pub(crate) fn queries() -> impl Iterator<Item = String> {
    let panels = panels::ROWS.iter().flat_map(|row| row.panels);
    let exprs = panels.flat_map(|panel| panel.queries).map(|query| query.expr);
    exprs
        .chain([ALERTS])
        .map(|expr| expr.replace("$namespace", ".*").replace("$__rate_interval", "5m"))
}

impl Panel {
    fn height(&self) -> u32 {
        match self.kind {
            Kind::Figure(..) | Kind::Share(..) | Kind::Plain => STAT_HEIGHT,
            Kind::Lines | Kind::LinesWithTraces | Kind::Areas | Kind::Table => HEIGHT,
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
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": true},
            "tooltip": {"mode": "multi", "sort": "desc"},
        });
        let (name, options) = match self.kind {
            Kind::Lines | Kind::LinesWithTraces | Kind::Areas => ("timeseries", lines),
            Kind::Figure(..) | Kind::Share(..) | Kind::Plain => ("stat", stat),
            Kind::Table => ("table", json!({"showHeader": true})),
        };
        let mut panel = json!({
            "id": id, "type": name, "title": self.title, "description": self.about,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": height},
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "fieldConfig": {"defaults": self.field(), "overrides": []},
            "options": options, "targets": targets,
        });
        if matches!(self.kind, Kind::Table) {
            // Prometheus answers with a row for each series; when and how it was asked is of no interest.
            panel["transformations"] = json!([{
                "id": "organize", "options": {"excludeByName": {"Time": true, "Value": true, "__name__": true}},
            }]);
        }
        panel
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
            }
            Kind::Plain => {
                field["thresholds"] =
                    json!({"mode": "absolute", "steps": [{"color": "text", "value": null}]});
            }
            Kind::Lines | Kind::LinesWithTraces => {
                field["custom"] = json!({"lineWidth": 1, "fillOpacity": 0, "showPoints": "never"});
                field["min"] = json!(0);
            }
            Kind::Areas => {
                field["custom"] = json!({
                    "lineWidth": 1, "fillOpacity": 30, "showPoints": "never", "stacking": {"mode": "normal", "group": "A"},
                });
                field["min"] = json!(0);
            }
            Kind::Table => {}
        }
        field
    }

    fn target(&self, query: &Query, id: char) -> Value {
        let mut target = json!({
            "refId": id.to_string(), "expr": query.expr, "legendFormat": query.legend,
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
        });
        match self.kind {
            Kind::LinesWithTraces => target["exemplar"] = json!(true),
            Kind::Table => {
                target["instant"] = json!(true);
                target["format"] = json!("table");
            }
            Kind::Lines | Kind::Areas | Kind::Figure(..) | Kind::Share(..) | Kind::Plain => {}
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
            queries().all(|query| !query.contains('$')),
            "{:?}",
            queries().collect::<Vec<_>>()
        );
        assert!(json().contains("$namespace"));
    }
}
