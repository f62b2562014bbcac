export type CallOptions = import("./connection").CallOptions;
export type ConnectionOptions = import("./connection").ConnectionOptions;
export type ServiceOptions = import("./connection").ServiceOptions;
export type FieldViolation = import("./errors").FieldViolation;
export type PreconditionViolation = import("./errors").PreconditionViolation;
export type About = import("./feedback").About;
export type BatchResult = import("./feedback").BatchResult;
export type Recorded = import("./feedback").Recorded;
export type LogEntry = import("./logger").LogEntry;
export type LogLevel = import("./logger").LogLevel;
export type Change = import("./node").Change;
export type ChangedResource = import("./node").ChangedResource;
export type NodeEvents = import("./node").NodeEvents;
export type NodeOptions = import("./node").NodeOptions;
export type ResolveOptions = import("./node").ResolveOptions;
export type Resolution = import("./node").Resolution;
export type Status = import("./node").Status;
export type RecorderCounts = import("./recorder").RecorderCounts;
import { EmendError } from "./errors";
import { Evidence } from "./evidence.js";
import { Feedback } from "./feedback";
import { Node } from "./node";
import { Outputs } from "./outputs.js";
import { QueryRecorder } from "./recorder";
import { Review } from "./review.js";
/**
 * The normal form of a phrase, by which it is known: phrases that are alike but for case, width, white space and characters that
 * nobody sees have the same.
 * @param {string} phrase
 */
export function normalize(phrase: string): string;
import { setLogger } from "./logger";
export { EmendError, Evidence, Feedback, Node, Outputs, QueryRecorder, Review, setLogger };
