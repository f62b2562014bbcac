export type CallOptions = import("./connection").CallOptions;
export type Candidate = import("./messages").Candidate;
export type ResourceKey = import("./messages").ResourceKey;
export type Input<T> = import("./convert").Input<T>;
/**
 * `etag`: only
 * the version that was seen.
 */
export type Decision = CallOptions & {
    namespace?: string;
    etag?: string;
    reason?: string;
    onBehalfOf?: string;
};
/** The review queue, what was learned, its log and the policies: what a reviewer's or an operator's script needs of learning-svc. */
export class Review extends Service {
    /**
     * The candidates of a namespace, newest first unless another order is asked for.
     * @param {Input<import('./messages').ListCandidatesRequest>} [filter]
     * @param {CallOptions} [options]
     */
    candidates(filter?: Input<import("./messages").ListCandidatesRequest>, options?: CallOptions): import("./connection.js").Pages<import("./messages").Candidate>;
    /**
     * One candidate with its votes, rivals, feedback and history.
     * @param {string} candidateId
     * @param {CallOptions & { namespace?: string }} [options]
     */
    candidate(candidateId: string, options?: CallOptions & {
        namespace?: string;
    }): Promise<import("./messages").GetCandidateResponse>;
    /**
     * Applies a candidate, as proposed or edited.
     * @param {string} candidateId
     * @param {Decision & Pick<Input<import('./messages').ApproveCandidateRequest>, 'editedValue' | 'acceptRedacted'>} [decision]
     */
    approve(candidateId: string, decision?: Decision & Pick<Input<import("./messages").ApproveCandidateRequest>, "editedValue" | "acceptRedacted">): Promise<import("./messages").ApproveCandidateResponse>;
    /**
     * Rejects a candidate for good: votes do not reopen it.
     * @param {string} candidateId
     * @param {Decision} [decision]
     */
    reject(candidateId: string, decision?: Decision): Promise<import("./messages").RejectCandidateResponse>;
    /**
     * Approves up to 100 candidates, each with its own result: the candidate, or an error.
     * @param {readonly Input<import('./messages').ApproveCandidateRequest>[]} requests
     * @param {CallOptions} [options]
     */
    approveAll(requests: readonly Input<import("./messages").ApproveCandidateRequest>[], options?: CallOptions): Promise<({
        error: import("./errors").EmendError;
        candidate?: undefined;
    } | {
        candidate: import("./messages").Candidate;
        error: undefined;
    })[]>;
    /**
     * Rejects up to 100 candidates, each with its own result.
     * @param {readonly Input<import('./messages').RejectCandidateRequest>[]} requests
     * @param {CallOptions} [options]
     */
    rejectAll(requests: readonly Input<import("./messages").RejectCandidateRequest>[], options?: CallOptions): Promise<({
        error: import("./errors").EmendError;
        candidate?: undefined;
    } | {
        candidate: import("./messages").Candidate;
        error: undefined;
    })[]>;
    /**
     * Undoes one's own approval or rejection, within ten minutes.
     * @param {string} candidateId
     * @param {Omit<Decision, 'reason'>} [decision]
     */
    undo(candidateId: string, decision?: Omit<Decision, "reason">): Promise<import("./messages").UndoDecisionResponse>;
    /**
     * Asks for a second opinion of a candidate that awaits review.
     * @param {string} candidateId
     * @param {string} comment What is asked.
     * @param {Omit<Decision, 'reason' | 'etag'> & { asked?: string }} [options] `asked`: of whom. Default: anybody else.
     */
    askSecondOpinion(candidateId: string, comment: string, options?: Omit<Decision, "reason" | "etag"> & {
        asked?: string;
    }): Promise<import("./messages").ReviewComment>;
    /**
     * Comments on a candidate; from whoever was asked for a second opinion it is the answer.
     * @param {string} candidateId
     * @param {string} comment
     * @param {Omit<Decision, 'reason' | 'etag'>} [options]
     */
    comment(candidateId: string, comment: string, options?: Omit<Decision, "reason" | "etag">): Promise<import("./messages").ReviewComment>;
    /**
     * What would be answered otherwise if a candidate were applied.
     * @param {string} candidateId
     * @param {CallOptions & Omit<Input<import('./messages').PreviewCandidateRequest>, 'candidateId'>} [options] `queries`: what was
     * searched lately.
     */
    preview(candidateId: string, options?: CallOptions & Omit<Input<import("./messages").PreviewCandidateRequest>, "candidateId">): Promise<import("./messages").PreviewedChanges>;
    /**
     * Shows others for 60 s that somebody has a candidate open.
     * @param {string} candidateId
     * @param {Omit<Decision, 'reason' | 'etag'>} [options]
     */
    lease(candidateId: string, options?: Omit<Decision, "reason" | "etag">): Promise<import("./messages").AcquireReviewLeaseResponse>;
    /**
     * Ends one's own lease.
     * @param {string} candidateId
     * @param {Omit<Decision, 'reason' | 'etag'>} [options]
     */
    release(candidateId: string, options?: Omit<Decision, "reason" | "etag">): Promise<void>;
    /**
     * What changes in the queue from now on.
     * @param {Input<import('./messages').WatchQueueRequest>} [what]
     * @param {CallOptions} [options]
     */
    watchQueue(what?: Input<import("./messages").WatchQueueRequest>, options?: CallOptions): AsyncIterableIterator<import("./messages").WatchQueueResponse>;
    /**
     * Counts what was received and decided, by day and kind.
     * @param {Input<import('./messages').GetQueueStatsRequest>} [what]
     * @param {CallOptions} [options]
     */
    queueStats(what?: Input<import("./messages").GetQueueStatsRequest>, options?: CallOptions): Promise<import("./messages").GetQueueStatsResponse>;
    /**
     * What was learned in a namespace, in the order of keys.
     * @param {Input<import('./messages').ListResourcesRequest>} [filter]
     * @param {CallOptions} [options]
     */
    resources(filter?: Input<import("./messages").ListResourcesRequest>, options?: CallOptions): import("./connection.js").Pages<import("./messages").Resource>;
    /**
     * What was learned for one key.
     * @param {Input<ResourceKey>} key
     * @param {CallOptions & { minRevision?: number }} [options] `minRevision`: answer from a state at least this new.
     */
    resource(key: Input<ResourceKey>, options?: CallOptions & {
        minRevision?: number;
    }): Promise<import("./messages").Resource>;
    /**
     * Sets a value as a person's decision.
     * @param {Input<ResourceKey>} key
     * @param {Input<import('./messages').ResourceValue>} value
     * @param {Omit<Decision, 'namespace'>} [decision]
     */
    put(key: Input<ResourceKey>, value: Input<import("./messages").ResourceValue>, decision?: Omit<Decision, "namespace">): Promise<import("./messages").PutResourceResponse>;
    /**
     * Imports many rows: phrase mappings, entities, prohibitions, synonyms. They are sent as they are made, so there may be more than fit
     * into memory; if making one fails, nothing is imported. A row without `line` has its place, from 1 on.
     * @param {Iterable<Input<import('./messages').ImportRow>> | AsyncIterable<Input<import('./messages').ImportRow>>} rows
     * @param {Input<import('./messages').ImportHeader> & CallOptions} [how] The timeout is for all of it. Default: ten minutes.
     */
    import(rows: Iterable<Input<import("./messages").ImportRow>> | AsyncIterable<Input<import("./messages").ImportRow>>, how?: Input<import("./messages").ImportHeader> & CallOptions): Promise<import("./messages").ImportResourcesResponse>;
    /**
     * Deletes a value.
     * @param {Input<ResourceKey>} key
     * @param {Omit<Decision, 'namespace'>} [decision]
     */
    delete(key: Input<ResourceKey>, decision?: Omit<Decision, "namespace">): Promise<import("./messages").DeleteResourceResponse>;
    /**
     * The audit trail, newest first.
     * @param {Input<import('./messages').ListRevisionsRequest>} [filter]
     * @param {CallOptions} [options]
     */
    revisions(filter?: Input<import("./messages").ListRevisionsRequest>, options?: CallOptions): import("./connection.js").Pages<import("./messages").Revision>;
    /**
     * Restores what was there before a revision or an operation, as a new revision.
     * @param {Input<import('./messages').RevertRevisionRequest>} request
     * @param {CallOptions} [options]
     */
    revert(request: Input<import("./messages").RevertRevisionRequest>, options?: CallOptions): Promise<import("./messages").RevertRevisionResponse>;
    /**
     * What a node answers for a phrase, asked of the service.
     * @param {Input<import('./messages').ResolveRequest>} request
     * @param {CallOptions} [options]
     */
    resolve(request: Input<import("./messages").ResolveRequest>, options?: CallOptions): Promise<import("./messages").ResolveResponse>;
    /**
     * The policy of a kind in a namespace.
     * @param {import('./messages').ResourceKind} kind
     * @param {CallOptions & { namespace?: string }} [options]
     */
    policy(kind: import("./messages").ResourceKind, options?: CallOptions & {
        namespace?: string;
    }): Promise<import("./messages").Policy>;
    /**
     * Changes a policy.
     * @param {Input<import('./messages').UpdatePolicyRequest>} request
     * @param {CallOptions} [options]
     */
    updatePolicy(request: Input<import("./messages").UpdatePolicyRequest>, options?: CallOptions): Promise<import("./messages").Policy>;
    /**
     * What a policy would apply, and how answers would differ, if it were changed so.
     * @param {Input<import('./messages').PreviewPolicyRequest>} request
     * @param {CallOptions} [options]
     */
    previewPolicy(request: Input<import("./messages").PreviewPolicyRequest>, options?: CallOptions): Promise<import("./messages").PreviewPolicyResponse>;
    /**
     * The policy of a whole namespace.
     * @param {CallOptions & { namespace?: string }} [options]
     */
    namespacePolicy(options?: CallOptions & {
        namespace?: string;
    }): Promise<import("./messages").NamespacePolicy>;
    /**
     * Changes the policy of a whole namespace.
     * @param {Input<import('./messages').UpdateNamespacePolicyRequest>} request
     * @param {CallOptions} [options]
     */
    updateNamespacePolicy(request: Input<import("./messages").UpdateNamespacePolicyRequest>, options?: CallOptions): Promise<import("./messages").NamespacePolicy>;
    /**
     * The fleet of nodes as last reported, by id.
     * @param {Input<import('./messages').ListNodesRequest>} [filter]
     * @param {CallOptions} [options]
     */
    nodes(filter?: Input<import("./messages").ListNodesRequest>, options?: CallOptions): import("./connection.js").Pages<import("./messages").Node>;
    #private;
}
import { Service } from "./connection.js";
