/**
 * What became of what was recorded.
 */
export type RecorderCounts = {
    /**
     * Accepted by the service.
     */
    sent: number;
    /**
     * Lost: the queue was full, the recorder was closed, or the service had no room or did not answer.
     */
    dropped: number;
    /**
     * Refused by the service as invalid.
     */
    invalid: number;
};
/**
 * What became of what was recorded.
 * @typedef {object} RecorderCounts
 * @property {number} sent Accepted by the service.
 * @property {number} dropped Lost: the queue was full, the recorder was closed, or the service had no room or did not answer.
 * @property {number} invalid Refused by the service as invalid.
 */
/**
 * Records what was searched and what users did with it. It never waits and fails no search: what is recorded takes a place in a
 * queue of 10,000, and is sent in the background.
 */
export class QueryRecorder {
    /**
     * @param {string | readonly string[]} address feedback-svc: `host:port`, or several.
     * @param {import('./connection').ServiceOptions & { namespace: string }} options
     */
    constructor(address: string | readonly string[], options: import("./connection").ServiceOptions & {
        namespace: string;
    });
    /**
     * Records a query. Say `hitCount` also if nothing was found: without it and without results it is not known.
     * @param {import('./convert').Input<import('./messages').Query>} query
     * @returns {boolean} False: there was no room, or the recorder is closed; it is dropped and counted.
     */
    query(query: import("./convert").Input<import("./messages").Query>): boolean;
    /**
     * Records what a user did with a result.
     * @param {import('./convert').Input<import('./messages').QueryInteraction>} interaction
     * @returns {boolean} As of `query`.
     */
    interaction(interaction: import("./convert").Input<import("./messages").QueryInteraction>): boolean;
    /**
     * Waits until all that was recorded before is sent or dropped.
     * @param {{ signal?: AbortSignal }} [options]
     */
    flush(options?: {
        signal?: AbortSignal;
    }): Promise<void>;
    /**
     * What became of what was recorded.
     * @returns {RecorderCounts}
     */
    counts(): RecorderCounts;
    /** Sends what is queued, for at most 2 s, and stops. */
    close(): Promise<void>;
    /** Lets `await using` close it. */
    [Symbol.asyncDispose](): Promise<void>;
    #private;
}
