'use strict'

const { Service } = require('./connection.js')
const { there } = require('./feedback.js')

/** @typedef {import('./connection').CallOptions} CallOptions */
/**
 * @template T
 * @typedef {import('./convert').Input<T>} Input
 */

const EVIDENCE = 'emend.learning.v1.EvidenceService'

/** The graph of pages, fragments, claims and edges that research backends keep in learning-svc, as people corrected it. */
class Evidence extends Service {
  /**
   * Adds nodes and edges, or replaces what is known of them: 1 to 1,000 together, all or nothing. Safe to repeat.
   * @param {Input<import('./messages').UpsertEvidenceRequest>} evidence
   * @param {CallOptions} [options]
   */
  upsert(evidence, options) {
    return this.call(`${EVIDENCE}/UpsertEvidence`, evidence, options)
  }

  /**
   * Deletes nodes and edges with what hangs on them. Safe to repeat.
   * @param {Input<import('./messages').DeleteEvidenceRequest>} what
   * @param {CallOptions} [options]
   */
  delete(what, options) {
    return this.call(`${EVIDENCE}/DeleteEvidence`, what, options)
  }

  /**
   * One claim with its confidence.
   * @param {string} claimId
   * @param {CallOptions & { namespace?: string }} [options]
   */
  async claim(claimId, options = {}) {
    return there((await this.call(`${EVIDENCE}/GetClaim`, { namespace: options.namespace, claimId }, options)).claim)
  }

  /**
   * Claims with their confidence.
   * @param {Input<import('./messages').ListClaimsRequest>} [filter]
   * @param {CallOptions} [options]
   */
  claims(filter = {}, options) {
    return this.pages(`${EVIDENCE}/ListClaims`, filter, options)
  }

  /**
   * Edges as corrected.
   * @param {Input<import('./messages').ListEdgesRequest>} [filter]
   * @param {CallOptions} [options]
   */
  edges(filter = {}, options) {
    return this.pages(`${EVIDENCE}/ListEdges`, filter, options)
  }

  /**
   * Decisions about domains, active and ended, the newest first.
   * @param {Input<import('./messages').ListDomainRulesRequest>} [filter]
   * @param {CallOptions} [options]
   */
  domainRules(filter = {}, options) {
    return this.pages(`${EVIDENCE}/ListDomainRules`, filter, options)
  }

  /**
   * The domains that are blocked now.
   * @param {Input<import('./messages').ListBlockedDomainsRequest>} [filter]
   * @param {CallOptions} [options]
   */
  blockedDomains(filter = {}, options) {
    return this.pages(`${EVIDENCE}/ListBlockedDomains`, filter, options)
  }

  /**
   * What was done to domains, claims and edges.
   * @param {Input<import('./messages').ListEvidenceEventsRequest>} [filter]
   * @param {CallOptions} [options]
   */
  events(filter = {}, options) {
    return this.pages(`${EVIDENCE}/ListEvidenceEvents`, filter, options)
  }

  /**
   * How often the model was wrong.
   * @param {Input<import('./messages').GetReviewStatsRequest>} [filter]
   * @param {CallOptions} [options]
   */
  reviewStats(filter = {}, options) {
    return this.call(`${EVIDENCE}/GetReviewStats`, filter, options)
  }

  /**
   * Everything about one task, as one consistent state.
   * @param {Input<import('./messages').ExportMaterialsRequest>} what
   * @param {CallOptions} [options]
   */
  exportMaterials(what, options) {
    return this.stream(`${EVIDENCE}/ExportMaterials`, what, options)
  }

  /**
   * What the model said, and what a person says is right.
   * @param {Input<import('./messages').ExportCorrectionsRequest>} what
   * @param {CallOptions} [options]
   */
  exportCorrections(what, options) {
    return this.stream(`${EVIDENCE}/ExportCorrections`, what, options)
  }

  /**
   * Ranks papers related to a paper; the best become pages.
   * @param {Input<import('./messages').RankCitationsRequest>} request
   * @param {CallOptions} [options]
   */
  rankCitations(request, options) {
    return this.call(`${EVIDENCE}/RankCitations`, request, options)
  }

  /**
   * Applies a trust file to the namespaces that it names. An operator's call.
   * @param {string} content The file's text.
   * @param {CallOptions & { format?: import('./messages').TrustFileFormat, onBehalfOf?: string }} [options] `format`: YAML,
   * the default, or TOML.
   */
  async applyTrustFile(content, options = {}) {
    const request = { content, format: options.format ?? 'YAML', onBehalfOf: options.onBehalfOf }
    return (await this.call(`${EVIDENCE}/ApplyTrustFile`, request, options)).namespaces
  }
}

module.exports = { Evidence }
