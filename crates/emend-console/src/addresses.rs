//! The console's addresses.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, Request, State},
    middleware::from_fn_with_state,
    routing::{get, post},
};
use http::StatusCode;

use crate::{
    form::Fields,
    page::{Part, Visitor},
    pages,
    server::{Parameters, Shared, answer, asset, choose, guarded, home, live, prefer, rate_script},
    sign_in::{sign_in, sign_in_page, sign_out},
    told,
};

/// A page or a form of a part: `part!(Today, pages::today::show)`.
macro_rules! part {
    ($part:ident, $handler:path) => {
        |State(console): State<Arc<Shared>>, path: Path<Parameters>, request: Request| {
            answer(
                console,
                path.0,
                request,
                Part::$part,
                async |visitor: &Visitor, fields: &Fields| $handler(visitor, fields).await,
            )
        }
    };
}

pub(crate) fn routes(console: Arc<Shared>) -> Router {
    let pages = Router::new()
        .route("/ns/{namespace}/today", get(part!(Today, pages::today::show)))
        .route("/ns/{namespace}/review", get(part!(Review, pages::review::show)))
        .route(
            "/ns/{namespace}/review/batch",
            post(part!(Review, pages::review::decide_several)),
        )
        .route(
            "/ns/{namespace}/review/{item}/preview",
            post(part!(Review, pages::review::attempt)),
        )
        .route(
            "/ns/{namespace}/review/{item}/approve",
            post(part!(Review, pages::review::approve)),
        )
        .route(
            "/ns/{namespace}/review/{item}/reject",
            post(part!(Review, pages::review::reject)),
        )
        .route("/ns/{namespace}/undo", post(part!(Log, told::undo)))
        .route("/ns/{namespace}/mine", get(part!(Mine, pages::mine::show)))
        .route(
            "/ns/{namespace}/review/{item}/ask",
            post(part!(Review, pages::review::talk::ask)),
        )
        .route(
            "/ns/{namespace}/review/{item}/comment",
            post(part!(Review, pages::review::talk::comment)),
        )
        .route(
            "/ns/{namespace}/review/{item}/lease",
            post(part!(Review, pages::review::lease)),
        )
        .route(
            "/ns/{namespace}/learned",
            get(part!(Learned, pages::learned::show)),
        )
        .route(
            "/ns/{namespace}/learned/resource",
            get(part!(Learned, pages::learned::one)),
        )
        .route(
            "/ns/{namespace}/learned/set",
            post(part!(Learned, pages::learned::set)),
        )
        .route(
            "/ns/{namespace}/learned/delete",
            post(part!(Learned, pages::learned::delete)),
        )
        .route("/ns/{namespace}/log", get(part!(Log, pages::log::show)))
        .route(
            "/ns/{namespace}/log/{item}/revert",
            get(part!(Log, pages::log::revert::preview)).post(part!(Log, pages::log::revert::revert)),
        )
        .route(
            "/ns/{namespace}/log/operations/{item}/revert",
            get(part!(Log, pages::log::revert::preview_operation))
                .post(part!(Log, pages::log::revert::revert_operation)),
        );
    let pages = owners(evidence(rate(outputs(pages))));
    pages
        .route("/ns/{namespace}/live", get(live))
        .route("/", get(home))
        .route("/ns", get(choose))
        .route("/sign-in", get(sign_in_page).post(sign_in))
        .route("/sign-out", post(sign_out))
        .route("/preferences", post(prefer))
        .layer(from_fn_with_state(Arc::clone(&console), guarded))
        .route("/assets/{name}", get(asset))
        .route("/rate.js", get(rate_script))
        .route("/livez", get("ok\n"))
        .route("/readyz", get("ok\n"))
        .fallback((StatusCode::NOT_FOUND, "there is no such page\n"))
        .with_state(console)
}

fn outputs(pages: Router<Arc<Shared>>) -> Router<Arc<Shared>> {
    pages
        .route(
            "/ns/{namespace}/outputs",
            get(part!(Outputs, pages::outputs::show)),
        )
        .route(
            "/ns/{namespace}/outputs/generate",
            post(part!(Outputs, pages::outputs::generate)),
        )
        .route(
            "/ns/{namespace}/outputs/target",
            get(part!(Outputs, pages::outputs::target)),
        )
        .route(
            "/ns/{namespace}/outputs/{item}/prompt",
            post(part!(Outputs, pages::outputs::put)),
        )
        .route(
            "/ns/{namespace}/outputs/pending",
            get(part!(Outputs, pages::outputs::improvements::pending)),
        )
        .route(
            "/ns/{namespace}/outputs/preview/{item}",
            get(part!(Outputs, pages::outputs::improvements::preview)),
        )
        .route(
            "/ns/{namespace}/outputs/history",
            get(part!(Outputs, pages::outputs::improvements::history)),
        )
        .route(
            "/ns/{namespace}/outputs/versions/{item}/use",
            post(part!(Outputs, pages::outputs::improvements::make_current)),
        )
        .route(
            "/ns/{namespace}/outputs/ratings",
            get(part!(Outputs, pages::outputs::ratings::show)),
        )
        .route(
            "/ns/{namespace}/outputs/profiles",
            get(part!(Outputs, pages::outputs::profiles::show)),
        )
        .route(
            "/ns/{namespace}/outputs/profiles/{item}/save",
            post(part!(Outputs, pages::outputs::profiles::save)),
        )
        .route(
            "/ns/{namespace}/outputs/profiles/{item}/generate",
            post(part!(Outputs, pages::outputs::profiles::generate)),
        )
        .route(
            "/ns/{namespace}/outputs/suggestions/{item}/accept",
            post(part!(Outputs, pages::outputs::profiles::accept)),
        )
        .route(
            "/ns/{namespace}/outputs/suggestions/{item}/reject",
            post(part!(Outputs, pages::outputs::profiles::reject)),
        )
}

fn rate(pages: Router<Arc<Shared>>) -> Router<Arc<Shared>> {
    pages
        .route("/ns/{namespace}/rate", get(part!(Rate, pages::rate::show)))
        .route("/ns/{namespace}/rate/{item}", get(part!(Rate, pages::rate::show)))
        .route(
            "/ns/{namespace}/rate/{item}/{output}",
            post(part!(Rate, pages::rate::submit)),
        )
}

fn evidence(pages: Router<Arc<Shared>>) -> Router<Arc<Shared>> {
    pages
        .route(
            "/ns/{namespace}/evidence",
            get(part!(Evidence, pages::evidence::domains::show)),
        )
        .route(
            "/ns/{namespace}/evidence/domains",
            post(part!(Evidence, pages::evidence::decide_domain)),
        )
        .route(
            "/ns/{namespace}/evidence/domains/{item}",
            post(part!(Evidence, pages::evidence::decide_domain)),
        )
        .route(
            "/ns/{namespace}/evidence/blocked",
            get(part!(Evidence, pages::evidence::domains::blocked)),
        )
        .route(
            "/ns/{namespace}/evidence/claims",
            get(part!(Evidence, pages::evidence::claims::show)),
        )
        .route(
            "/ns/{namespace}/evidence/claims/{item}",
            get(part!(Evidence, pages::evidence::claims::one))
                .post(part!(Evidence, pages::evidence::decide_claim)),
        )
        .route(
            "/ns/{namespace}/evidence/edges",
            get(part!(Evidence, pages::evidence::edges::show)),
        )
        .route(
            "/ns/{namespace}/evidence/edges/{item}",
            post(part!(Evidence, pages::evidence::label_edge)),
        )
        .route(
            "/ns/{namespace}/evidence/events",
            get(part!(Evidence, pages::evidence::events::show)),
        )
}

/// Search, fleet and policies.
fn owners(pages: Router<Arc<Shared>>) -> Router<Arc<Shared>> {
    pages
        .route("/ns/{namespace}/search", get(part!(Search, pages::search::show)))
        .route(
            "/ns/{namespace}/search/queue",
            get(part!(Search, pages::search::show_queue)).post(part!(Search, pages::search::label)),
        )
        .route(
            "/ns/{namespace}/search/queries",
            get(part!(Search, pages::search::show_queries)),
        )
        .route(
            "/ns/{namespace}/search/words",
            get(part!(Search, pages::search::show_words)),
        )
        .route(
            "/ns/{namespace}/search/synonyms",
            post(part!(Search, pages::search::add_synonym)),
        )
        .route(
            "/ns/{namespace}/search/rewrites/{item}",
            post(part!(Search, pages::search::approve_rewrite)),
        )
        .route(
            "/ns/{namespace}/search/try",
            get(part!(Search, pages::search::show_tried)),
        )
        .route(
            "/ns/{namespace}/search/tuning",
            get(part!(Search, pages::search::show_tuning)).post(part!(Search, pages::search::set_tuning)),
        )
        .route(
            "/ns/{namespace}/search/tuning/delete",
            post(part!(Search, pages::search::delete_tuning)),
        )
        .route(
            "/ns/{namespace}/search/settings",
            get(part!(Search, pages::search::show_settings))
                .post(part!(Search, pages::search::update_settings)),
        )
        .route("/ns/{namespace}/fleet", get(part!(Fleet, pages::fleet::show)))
        .route(
            "/ns/{namespace}/fleet/redrive",
            post(part!(Fleet, pages::fleet::redrive)),
        )
        .route(
            "/ns/{namespace}/policies",
            get(part!(Policies, pages::policies::show))
                .post(part!(Policies, pages::policies::update_namespace)),
        )
        .route(
            "/ns/{namespace}/policies/{item}",
            post(part!(Policies, pages::policies::update)),
        )
}
