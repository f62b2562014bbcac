/**
 * What a service, or this package, says is wrong with one field.
 */
export type FieldViolation = {
    /**
     * Which field, for example `correction.verb.correctChoice`.
     */
    field: string;
    /**
     * What is wrong, with the bound.
     */
    description: string;
};
/**
 * A precondition that does not hold.
 */
export type PreconditionViolation = {
    /**
     * Its sort, for example `NEWER_REVISION`.
     */
    kind: string;
    /**
     * What it is about.
     */
    subject: string;
    /**
     * What does not hold.
     */
    description: string;
};
/**
 * What is known of an error beside its code and message.
 */
export type ErrorDetails = {
    /**
     * A stable reason in UPPER_SNAKE_CASE.
     */
    reason?: string | undefined;
    /**
     * One sentence.
     */
    explanation?: string | undefined;
    /**
     * Every field that is wrong.
     */
    violations?: FieldViolation[] | undefined;
    /**
     * Every precondition that does not hold.
     */
    preconditions?: PreconditionViolation[] | undefined;
    /**
     * How many milliseconds to wait before another attempt.
     */
    retryAfter?: number | undefined;
    /**
     * The request's id in the service's log.
     */
    requestId?: string | undefined;
};
/**
 * What a service, or this package, says is wrong with one field.
 * @typedef {object} FieldViolation
 * @property {string} field Which field, for example `correction.verb.correctChoice`.
 * @property {string} description What is wrong, with the bound.
 */
/**
 * A precondition that does not hold.
 * @typedef {object} PreconditionViolation
 * @property {string} kind Its sort, for example `NEWER_REVISION`.
 * @property {string} subject What it is about.
 * @property {string} description What does not hold.
 */
/**
 * What is known of an error beside its code and message.
 * @typedef {object} ErrorDetails
 * @property {string} [reason] A stable reason in UPPER_SNAKE_CASE.
 * @property {string} [explanation] One sentence.
 * @property {FieldViolation[]} [violations] Every field that is wrong.
 * @property {PreconditionViolation[]} [preconditions] Every precondition that does not hold.
 * @property {number} [retryAfter] How many milliseconds to wait before another attempt.
 * @property {string} [requestId] The request's id in the service's log.
 */
/** Why a call, or a setting, was refused. Its message names every field that is wrong, and the bound. */
export class EmendError extends Error {
    /**
     * @param {string} code The gRPC code, for example `INVALID_ARGUMENT`.
     * @param {string} message What happened.
     * @param {ErrorDetails} [details] What else is known.
     */
    constructor(code: string, message: string, details?: ErrorDetails);
    /**
     * The gRPC code: `INVALID_ARGUMENT`, `NOT_FOUND`, `UNAVAILABLE` …
     * @readonly
     */
    readonly code: string;
    /**
     * A stable reason in UPPER_SNAKE_CASE, for example `REQUEST_ID_REUSED`; undefined if none was given.
     * @readonly
     */
    readonly reason: string | undefined;
    /**
     * One sentence: the message without code, reason and fields.
     * @readonly
     */
    readonly explanation: string;
    /**
     * Every field that is wrong.
     * @readonly
     */
    readonly violations: FieldViolation[];
    /**
     * Every precondition that does not hold, for example each revision that is in the way of a revert.
     * @readonly
     */
    readonly preconditions: PreconditionViolation[];
    /**
     * How many milliseconds to wait before another attempt; undefined if the service did not say.
     * @readonly
     */
    readonly retryAfter: number | undefined;
    /**
     * The request's id in the service's log; undefined if it did not say.
     * @readonly
     */
    readonly requestId: string | undefined;
    /** Whether what was to be changed may be changed all the same: there was no answer in time. */
    get mayBeStored(): boolean;
}
/**
 * An error as the part in Rust tells it.
 * @param {any} error
 */
export function asError(error: any): EmendError;
/**
 * An error for settings or arguments that this package refuses by itself.
 * @param {string} field Which one.
 * @param {string} description What is wrong, with the bound.
 */
export function invalid(field: string, description: string): EmendError;
