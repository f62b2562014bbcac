export type CallOptions = import("./connection").CallOptions;
export type Correction = import("./messages").Correction;
export type StoredFeedback = import("./messages").Feedback;
export type Input<T> = import("./convert").Input<T>;
/**
 * Who says it, why, and when to answer: what every correction may have.
 */
export type About = {
    /**
     * The search application. Default: the client's.
     */
    namespace?: string | undefined;
    /**
     * The person or agent behind it: a stable id, or more.
     */
    reporter?: string | {
        id?: string | undefined;
        sessionId?: string | undefined;
        client?: string | undefined;
        clientKey?: string | undefined;
    } | undefined;
    /**
     * The query that it is about.
     */
    queryId?: string | undefined;
    /**
     * Why, in the reporter's words; decisions about domains and claims need one.
     */
    reason?: string | undefined;
    /**
     * Anything that helps a reviewer.
     */
    context?: Record<string, string> | undefined;
    /**
     * Learn it for the reporter alone.
     */
    onlyForReporter?: boolean | undefined;
    /**
     * Answer once it is evaluated, or after at most 2 s. Default: once it is stored.
     */
    wait?: boolean | undefined;
    /**
     * Makes the call safe to repeat, also by another process. Default: a random one.
     */
    requestId?: string | undefined;
};
/**
 * A correction as it was stored.
 */
export type Recorded = {
    /**
     * Its id.
     */
    feedbackId: string;
    /**
     * What has become of it: `APPLIED`, `PENDING`, `AWAITING_REVIEW` …
     */
    state: import("./messages").OutcomeState;
    /**
     * Why, in UPPER_SNAKE_CASE; empty if the state says enough.
     */
    reason: string;
    /**
     * The same as a sentence for the reporter.
     */
    message: string;
    /**
     * The revision that applied it, for `node.waitFor`; undefined if none did.
     */
    appliedRevision: number | undefined;
    /**
     * All that was stored.
     */
    feedback: StoredFeedback;
};
/**
 * A result of a batch.
 */
export type BatchResult = (Recorded & {
    error: undefined;
}) | {
    error: EmendError;
};
/**
 * Submits corrections, and reads what was said: a client of feedback-svc.
 *
 * Every submission has a request id, so it is sent again while the service is unreachable or overloaded, and stored once.
 */
export class Feedback extends Service {
    /**
     * The wrong verb was chosen for what the user said.
     * @param {string} input What the user said.
     * @param {About & CallOptions & { correct: string, insteadOf?: string }} correction `correct`: the right verb. `insteadOf`:
     * what the system chose.
     */
    verb(input: string, { correct, insteadOf, ...about }: About & CallOptions & {
        correct: string;
        insteadOf?: string;
    }): Promise<Recorded>;
    /**
     * A phrase means a verb.
     * @param {string} phrase
     * @param {string} verb
     * @param {About & CallOptions} [about]
     */
    phrase(phrase: string, verb: string, about?: About & CallOptions): Promise<Recorded>;
    /**
     * The wrong entity was chosen for what the user said.
     * @param {string} input What the user said.
     * @param {About & CallOptions & { correct: string, insteadOf?: string }} correction `correct`: the right entity's id.
     * `insteadOf`: the one that the system chose.
     */
    entity(input: string, { correct, insteadOf, ...about }: About & CallOptions & {
        correct: string;
        insteadOf?: string;
    }): Promise<Recorded>;
    /**
     * Never offer this choice for this phrase.
     * @param {string} phrase
     * @param {string} choice A verb or an entity's id.
     * @param {About & CallOptions} [about]
     */
    prohibit(phrase: string, choice: string, about?: About & CallOptions): Promise<Recorded>;
    /**
     * Other terms stand for this one.
     * @param {string} term
     * @param {readonly string[]} equivalents 1 to 32 terms.
     * @param {About & CallOptions & { relation?: import('./messages').SynonymRelation }} [about] `relation`: EQUIVALENT (the
     * default), ONE_WAY or TYPO.
     */
    synonyms(term: string, equivalents: readonly string[], { relation, ...about }?: About & CallOptions & {
        relation?: import("./messages").SynonymRelation;
    }): Promise<Recorded>;
    /**
     * The sources of a domain must not be shown.
     * @param {string} pattern `example.org` with all its subdomains, or `*.example.org` for these alone.
     * @param {About & CallOptions & { reason: string, taskId?: string }} about
     */
    blockDomain(pattern: string, { taskId, ...about }: About & CallOptions & {
        reason: string;
        taskId?: string;
    }): Promise<Recorded>;
    /**
     * The sources of a domain are shown again.
     * @param {string} pattern As in `blockDomain`.
     * @param {About & CallOptions & { reason: string, taskId?: string, level?: import('./messages').TrustLevel }} about `level`:
     * how far they are trusted.
     */
    unblockDomain(pattern: string, { taskId, level, ...about }: About & CallOptions & {
        reason: string;
        taskId?: string;
        level?: import("./messages").TrustLevel;
    }): Promise<Recorded>;
    /**
     * What people decided about a domain no longer applies.
     * @param {string} pattern As in `blockDomain`.
     * @param {About & CallOptions & { reason: string, taskId?: string }} about
     */
    clearDomain(pattern: string, { taskId, ...about }: About & CallOptions & {
        reason: string;
        taskId?: string;
    }): Promise<Recorded>;
    /**
     * The sources of a domain are trusted this far.
     * @param {string} pattern As in `blockDomain`.
     * @param {import('./messages').TrustLevel} level
     * @param {About & CallOptions & { reason: string, taskId?: string }} about
     */
    trustDomain(pattern: string, level: import("./messages").TrustLevel, { taskId, ...about }: About & CallOptions & {
        reason: string;
        taskId?: string;
    }): Promise<Recorded>;
    /**
     * A claim is hidden from results.
     * @param {string} claimId
     * @param {About & CallOptions & { reason: string, reasonCode?: string, taskId?: string }} about
     */
    rejectClaim(claimId: string, { reasonCode, taskId, ...about }: About & CallOptions & {
        reason: string;
        reasonCode?: string;
        taskId?: string;
    }): Promise<Recorded>;
    /**
     * A claim is shown, whatever the backend reports against it.
     * @param {string} claimId
     * @param {About & CallOptions & { reason: string, taskId?: string }} about
     */
    restoreClaim(claimId: string, { taskId, ...about }: About & CallOptions & {
        reason: string;
        taskId?: string;
    }): Promise<Recorded>;
    /**
     * An edge has this label.
     * @param {string} edgeId
     * @param {'SUPPORTS' | 'REFUTES' | 'NEUTRAL'} correctRelation
     * @param {About & CallOptions & { taskId?: string }} [about]
     */
    correctEdge(edgeId: string, correctRelation: "SUPPORTS" | "REFUTES" | "NEUTRAL", { taskId, ...about }?: About & CallOptions & {
        taskId?: string;
    }): Promise<Recorded>;
    /**
     * Queries of one type are searched so.
     * @param {string} queryType
     * @param {Input<import('./messages').SearchTuningValue>} tuning
     * @param {About & CallOptions} [about]
     */
    tuning(queryType: string, tuning: Input<import("./messages").SearchTuningValue>, about?: About & CallOptions): Promise<Recorded>;
    /**
     * What a search found is good (1), neither (0), or not what was wanted (-1).
     * @param {string} queryId The query, as its backend recorded it.
     * @param {1 | 0 | -1} value
     * @param {About & CallOptions} [about]
     */
    rate(queryId: string, value: 1 | 0 | -1, about?: About & CallOptions): Promise<Recorded>;
    /**
     * What an AI made is good, or is not.
     * @param {Input<import('./messages').Rating>} rating
     * @param {About & CallOptions} [about]
     */
    rateOutput(rating: Input<import("./messages").Rating>, about?: About & CallOptions): Promise<Recorded>;
    /**
     * Submits a correction of any form.
     * @param {Input<Correction>} correction One of its fields.
     * @param {About & CallOptions} [about]
     * @returns {Promise<Recorded>}
     */
    submit(correction: Input<Correction>, about?: About & CallOptions): Promise<Recorded>;
    /**
     * Submits up to 100 corrections in one call. Each has its own result, in order: as stored, or with `error`.
     * @param {readonly { correction: Input<Correction>, about?: About }[]} corrections
     * @param {CallOptions & { wait?: boolean }} [options]
     * @returns {Promise<BatchResult[]>}
     */
    submitAll(corrections: readonly {
        correction: Input<Correction>;
        about?: About;
    }[], options?: CallOptions & {
        wait?: boolean;
    }): Promise<BatchResult[]>;
    /**
     * One feedback with what has become of it.
     * @param {string} feedbackId
     * @param {CallOptions & { namespace?: string }} [options]
     */
    get(feedbackId: string, options?: CallOptions & {
        namespace?: string;
    }): Promise<Recorded>;
    /**
     * The feedback of a namespace, newest first.
     * @param {Input<import('./messages').ListFeedbackRequest>} [filter]
     * @param {CallOptions} [options]
     */
    list(filter?: Input<import("./messages").ListFeedbackRequest>, options?: CallOptions): import("./connection.js").Pages<import("./messages").Feedback>;
    /**
     * Takes a correction back. Safe to repeat.
     * @param {string} feedbackId
     * @param {CallOptions & { namespace?: string, reason?: string, wait?: boolean }} [options]
     */
    retract(feedbackId: string, options?: CallOptions & {
        namespace?: string;
        reason?: string;
        wait?: boolean;
    }): Promise<Recorded>;
    /**
     * Sets the labels of a rating of a search answer.
     * @param {string} feedbackId
     * @param {{ setTags?: string[], clearTags?: string[], processed?: boolean }} labels
     * @param {CallOptions & { namespace?: string }} [options]
     */
    label(feedbackId: string, labels: {
        setTags?: string[];
        clearTags?: string[];
        processed?: boolean;
    }, options?: CallOptions & {
        namespace?: string;
    }): Promise<Recorded>;
    /**
     * Erases the personal parts of one feedback everywhere. Safe to repeat.
     * @param {string} feedbackId
     * @param {CallOptions & { namespace?: string, wait?: boolean }} [options]
     */
    redact(feedbackId: string, options?: CallOptions & {
        namespace?: string;
        wait?: boolean;
    }): Promise<Recorded>;
    /**
     * Erases everything about one reporter. Call again to see what remains.
     * @param {string} reporterId
     * @param {CallOptions & { namespace?: string }} [options]
     */
    redactReporter(reporterId: string, options?: CallOptions & {
        namespace?: string;
    }): Promise<import("./messages").RedactReporterResponse>;
    /**
     * The events that learning-svc refused for good, oldest first.
     * @param {Input<import('./messages').ListDeadLettersRequest>} [filter]
     * @param {CallOptions} [options]
     */
    deadLetters(filter?: Input<import("./messages").ListDeadLettersRequest>, options?: CallOptions): import("./connection.js").Pages<import("./messages").DeadLetter>;
    /**
     * Has dead letters delivered again.
     * @param {Input<import('./messages').RedriveDeadLettersRequest>} [which]
     * @param {CallOptions} [options]
     */
    redriveDeadLetters(which?: Input<import("./messages").RedriveDeadLettersRequest>, options?: CallOptions): Promise<import("./messages").RedriveDeadLettersResponse>;
    /**
     * The recorded queries of a namespace, newest first.
     * @param {Input<import('./messages').ListQueriesRequest>} [filter]
     * @param {CallOptions} [options]
     */
    queries(filter?: Input<import("./messages").ListQueriesRequest>, options?: CallOptions): import("./connection.js").Pages<import("./messages").Query>;
    /**
     * How many ratings are negative, and how many queries found nothing.
     * @param {Input<import('./messages').GetFeedbackStatsRequest>} [filter]
     * @param {CallOptions} [options]
     */
    stats(filter?: Input<import("./messages").GetFeedbackStatsRequest>, options?: CallOptions): Promise<import("./messages").GetFeedbackStatsResponse>;
    /**
     * The words that stand out in queries whose results were rated -1.
     * @param {Input<import('./messages').ListNegativeTermsRequest>} [filter]
     * @param {CallOptions} [options]
     */
    negativeTerms(filter?: Input<import("./messages").ListNegativeTermsRequest>, options?: CallOptions): Promise<import("./messages").ListNegativeTermsResponse>;
    /**
     * The ratings of search answers as text, in parts that are whole lines.
     * @param {Input<import('./messages').ExportFeedbackRequest>} what
     * @param {CallOptions} [options]
     */
    exportRatings(what: Input<import("./messages").ExportFeedbackRequest>, options?: CallOptions): AsyncIterableIterator<import("./messages").ExportFeedbackResponse>;
    /**
     * What is done with the feedback of a namespace.
     * @param {CallOptions & { namespace?: string }} [options]
     */
    settings(options?: CallOptions & {
        namespace?: string;
    }): Promise<import("./messages").Settings>;
    /**
     * Changes settings: those that are given, or those that `updateMask` names.
     * @param {Input<import('./messages').Settings>} settings
     * @param {CallOptions & { updateMask?: string[], onBehalfOf?: string, reason?: string }} [options]
     */
    updateSettings(settings: Input<import("./messages").Settings>, options?: CallOptions & {
        updateMask?: string[];
        onBehalfOf?: string;
        reason?: string;
    }): Promise<import("./messages").Settings>;
    #private;
}
/**
 * @template T
 * @param {T | undefined} part
 * @returns {T}
 */
export function there<T>(part: T | undefined): T;
import { EmendError } from "./errors.js";
import { Service } from "./connection.js";
