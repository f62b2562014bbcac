export type CallOptions = import("./connection").CallOptions;
export type Input<T> = import("./convert").Input<T>;
/** The graph of pages, fragments, claims and edges that research backends keep in learning-svc, as people corrected it. */
export class Evidence extends Service {
    /**
     * Adds nodes and edges, or replaces what is known of them: 1 to 1,000 together, all or nothing. Safe to repeat.
     * @param {Input<import('./messages').UpsertEvidenceRequest>} evidence
     * @param {CallOptions} [options]
     */
    upsert(evidence: Input<import("./messages").UpsertEvidenceRequest>, options?: CallOptions): Promise<import("./messages").UpsertEvidenceResponse>;
    /**
     * Deletes nodes and edges with what hangs on them. Safe to repeat.
     * @param {Input<import('./messages').DeleteEvidenceRequest>} what
     * @param {CallOptions} [options]
     */
    delete(what: Input<import("./messages").DeleteEvidenceRequest>, options?: CallOptions): Promise<import("./messages").DeleteEvidenceResponse>;
    /**
     * One claim with its confidence.
     * @param {string} claimId
     * @param {CallOptions & { namespace?: string }} [options]
     */
    claim(claimId: string, options?: CallOptions & {
        namespace?: string;
    }): Promise<import("./messages").Claim>;
    /**
     * Claims with their confidence.
     * @param {Input<import('./messages').ListClaimsRequest>} [filter]
     * @param {CallOptions} [options]
     */
    claims(filter?: Input<import("./messages").ListClaimsRequest>, options?: CallOptions): import("./connection.js").Pages<import("./messages").Claim>;
    /**
     * Edges as corrected.
     * @param {Input<import('./messages').ListEdgesRequest>} [filter]
     * @param {CallOptions} [options]
     */
    edges(filter?: Input<import("./messages").ListEdgesRequest>, options?: CallOptions): import("./connection.js").Pages<import("./messages").Edge>;
    /**
     * Decisions about domains, active and ended, the newest first.
     * @param {Input<import('./messages').ListDomainRulesRequest>} [filter]
     * @param {CallOptions} [options]
     */
    domainRules(filter?: Input<import("./messages").ListDomainRulesRequest>, options?: CallOptions): import("./connection.js").Pages<import("./messages").DomainRuleRecord>;
    /**
     * The domains that are blocked now.
     * @param {Input<import('./messages').ListBlockedDomainsRequest>} [filter]
     * @param {CallOptions} [options]
     */
    blockedDomains(filter?: Input<import("./messages").ListBlockedDomainsRequest>, options?: CallOptions): import("./connection.js").Pages<import("./messages").BlockedDomain>;
    /**
     * What was done to domains, claims and edges.
     * @param {Input<import('./messages').ListEvidenceEventsRequest>} [filter]
     * @param {CallOptions} [options]
     */
    events(filter?: Input<import("./messages").ListEvidenceEventsRequest>, options?: CallOptions): import("./connection.js").Pages<import("./messages").EvidenceEvent>;
    /**
     * How often the model was wrong.
     * @param {Input<import('./messages').GetReviewStatsRequest>} [filter]
     * @param {CallOptions} [options]
     */
    reviewStats(filter?: Input<import("./messages").GetReviewStatsRequest>, options?: CallOptions): Promise<import("./messages").GetReviewStatsResponse>;
    /**
     * Everything about one task, as one consistent state.
     * @param {Input<import('./messages').ExportMaterialsRequest>} what
     * @param {CallOptions} [options]
     */
    exportMaterials(what: Input<import("./messages").ExportMaterialsRequest>, options?: CallOptions): AsyncIterableIterator<import("./messages").ExportMaterialsResponse>;
    /**
     * What the model said, and what a person says is right.
     * @param {Input<import('./messages').ExportCorrectionsRequest>} what
     * @param {CallOptions} [options]
     */
    exportCorrections(what: Input<import("./messages").ExportCorrectionsRequest>, options?: CallOptions): AsyncIterableIterator<import("./messages").ExportCorrectionsResponse>;
    /**
     * Ranks papers related to a paper; the best become pages.
     * @param {Input<import('./messages').RankCitationsRequest>} request
     * @param {CallOptions} [options]
     */
    rankCitations(request: Input<import("./messages").RankCitationsRequest>, options?: CallOptions): Promise<import("./messages").RankCitationsResponse>;
    /**
     * Applies a trust file to the namespaces that it names. An operator's call.
     * @param {string} content The file's text.
     * @param {CallOptions & { format?: import('./messages').TrustFileFormat, onBehalfOf?: string }} [options] `format`: YAML,
     * the default, or TOML.
     */
    applyTrustFile(content: string, options?: CallOptions & {
        format?: import("./messages").TrustFileFormat;
        onBehalfOf?: string;
    }): Promise<import("./messages").TrustFileApplied[]>;
}
import { Service } from "./connection.js";
