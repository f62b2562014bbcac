export type ResourceKind = import("./messages").ResourceKind;
export type OwnNodeOptions = {
    /**
     * Its name in the fleet, 1 to 128 characters of [A-Za-z0-9._:-]; another one for each process. Default:
     * the host's name and the process id.
     */
    id?: string | undefined;
    /**
     * A directory in which it keeps a copy of what it holds, to start from while learning-svc cannot
     * be reached. It is made if it is missing. The file is named after the node: no two nodes may share it. Default: no copy.
     */
    cacheDir?: string | undefined;
    /**
     * Only these search applications. Default: all that the caller may read.
     */
    namespaces?: readonly string[] | undefined;
    /**
     * Only these kinds. Default: all.
     */
    kinds?: readonly import("./messages").ResourceKind[] | undefined;
    /**
     * Also what was learned for single users. Default: false.
     */
    includeUserScoped?: boolean | undefined;
    /**
     * The program's version, shown in the fleet.
     */
    version?: string | undefined;
    /**
     * Where it runs, shown in the fleet.
     */
    zone?: string | undefined;
    /**
     * More, shown in the fleet.
     */
    labels?: Record<string, string> | undefined;
    /**
     * It is no longer listed once it has gone. Default: false.
     */
    transient?: boolean | undefined;
    /**
     * Milliseconds between signs of life of the service, 1,000 to 3,600,000. A service that
     * sends nothing for three times as long, but at least 25 s, is left. Default: 9,000.
     */
    bookmarkInterval?: number | undefined;
    /**
     * Least milliseconds between writes of the copy. Default: 30,000.
     */
    cacheInterval?: number | undefined;
    /**
     * The installation to accept although the copy is of another one.
     */
    acceptInstallation?: string | undefined;
    /**
     * Keeps the current prompts of a namespace as
     * files in a directory.
     */
    mirrorPrompts?: {
        directory: string;
        namespace: string;
        label?: string;
    } | undefined;
    /**
     * The directory of the vectors (Model2Vec's format) that near answers are given by, too, where a
     * policy names just these; all nodes need the same files. Default: by words alone.
     */
    nearVectors?: string | undefined;
};
/**
 * How a node is set up.
 */
export type NodeOptions = import("./connection").ConnectionOptions & OwnNodeOptions;
/**
 * For what, for whom and among which a phrase is resolved.
 */
export type ResolveOptions = {
    /**
     * Default: INVOCATION_PHRASE.
     */
    kind?: "INVOCATION_PHRASE" | "ENTITY_ALIAS" | undefined;
    /**
     * Whose own answer comes first.
     */
    user?: string | undefined;
    /**
     * What the backend would answer by itself.
     */
    candidates?: readonly (readonly [choice: string, score: number])[] | undefined;
    /**
     * Where nothing was learned for the phrase, answer by what was learned for similar ones, too. The first call
     * that asks has the models made, which takes seconds; `waitNear` waits for them.
     */
    near?: boolean | undefined;
};
/**
 * A phrase that was learned.
 */
export type NearPhrase = {
    /**
     * In normal form.
     */
    phrase: string;
    /**
     * What it means.
     */
    choice: string;
    /**
     * How similar it is, 0 to 1.
     */
    similarity: number;
};
/**
 * What a phrase that nobody corrected most likely means.
 */
export type Near = {
    /**
     * The choice, never a prohibited one.
     */
    choice: string;
    /**
     * How likely it is right, 0 to 1.
     */
    confidence: number;
    /**
     * The nearest phrases that were learned, the nearest first.
     */
    because: NearPhrase[];
    /**
     * The model that answered: equal models give equal answers.
     */
    model: string;
};
/**
 * What a node answers for a phrase.
 */
export type Resolution = {
    /**
     * What was learned: the verb or the entity's id; undefined if nothing was, or if it is prohibited.
     */
    choice: string | undefined;
    /**
     * 1 of what was learned, else 0.
     */
    score: number;
    /**
     * Choices that must never be offered for the phrase, sorted.
     */
    prohibited: string[];
    /**
     * Something was learned, but it is prohibited.
     */
    choiceProhibited: boolean;
    /**
     * Ask the user: nothing was learned, and of the candidates that are not prohibited there is more
     * than one and the best scores below 0.9.
     */
    feedbackHint: boolean;
    /**
     * Whether what was learned is everybody's or the user's own.
     */
    scope: "GLOBAL" | "USER" | undefined;
    /**
     * The revision that applied it; 0 if nothing was learned.
     */
    revision: number;
    /**
     * The revision of the state that answered.
     */
    stateRevision: number;
    /**
     * The phrase in normal form.
     */
    phrase: string;
    /**
     * What was learned for similar phrases; undefined: nothing that is similar enough, or nobody asked for
     * it, or something was learned for the phrase itself.
     */
    near: Near | undefined;
    /**
     * Whether near answers are given.
     */
    nearStatus: "NOT_ASKED" | "READY" | "WITHOUT_VECTORS" | "FITTING" | "OFF" | "TOO_MANY";
};
/**
 * How current a node is.
 */
export type Status = {
    /**
     * Whether the stream is open. A service that falls silent is noticed within 30 s.
     */
    connected: boolean;
    /**
     * Everything at or below it is applied.
     */
    revision: number;
    /**
     * Where what it answers from came from.
     */
    origin: "NOTHING" | "DISK_COPY" | "STREAM";
    /**
     * How many milliseconds ago it was known to hold all there was; undefined if never.
     */
    age: number | undefined;
    /**
     * Whose resources it holds.
     */
    installation: string | undefined;
    /**
     * Who answers instead, and was not accepted: nothing is updated any more.
     */
    otherInstallation: string | undefined;
    /**
     * The epoch of the log that the revision belongs to.
     */
    epoch: string | undefined;
    /**
     * The last comparison with the service failed: a new snapshot is on its way.
     */
    inDoubt: boolean;
    /**
     * Why the last stream ended, for people; undefined while one is open.
     */
    lastError: string | undefined;
};
/**
 * One key that changed.
 */
export type ChangedResource = {
    /**
     * The search application.
     */
    namespace: string;
    /**
     * What it is about.
     */
    kind: ResourceKind;
    /**
     * The key, in normal form.
     */
    key: string;
    /**
     * What else identifies it; empty for most kinds.
     */
    qualifier: string;
    /**
     * Whose it is; empty: everybody's.
     */
    userId: string;
    /**
     * The revision that changed it.
     */
    revision: number;
    /**
     * It is gone.
     */
    removed: boolean;
};
/**
 * What changed in what a node answers from.
 */
export type Change = {
    /**
     * Everything at or below it is applied.
     */
    revision: number;
    /**
     * Everything was replaced, and `changes` does not say what changed.
     */
    snapshot: boolean;
    /**
     * What changed, in the order of revisions.
     */
    changes: ChangedResource[];
};
/**
 * In words for people.
 */
export type Why = {
    reason: string;
};
/**
 * The events of a node.
 */
export type NodeEvents = {
    /**
     * What it answers from has changed.
     */
    change: [change: Change];
    /**
     * A stream is open.
     */
    connected: [];
    /**
     * The stream is closed, and is opened again by itself.
     */
    disconnected: [why: Why];
    /**
     * It holds something else than the service; a snapshot is on its way.
     */
    inDoubt: [why: Why];
    /**
     * Another installation answers than the one whose resources it holds; `status` has both.
     */
    installationMismatch: [why: Why];
    /**
     * Some events were not told, because there were too many at once.
     */
    missed: [why: Why];
};
/**
 * A rated output.
 */
export type Example = {
    input: string;
    output: string;
    corrected: string;
    issues: string[];
};
/**
 * One search of a plan.
 */
export type Attempt = {
    /**
     * Which one, from 1.
     */
    number: number;
    /**
     * Where to search; empty: where the backend does without being told.
     */
    namespaces: string[];
    /**
     * Where to search beside that.
     */
    moreNamespaces: string[];
    /**
     * The score from which on results are given.
     */
    minScore: number;
    /**
     * How many results.
     */
    topK: number;
    /**
     * Whether the text is embedded with its synonyms.
     */
    expand: boolean;
};
/**
 * A node: a copy of what was learned, kept up to date in the background, from which look-ups are answered at once.
 *
 * It never keeps the process from ending. Close it all the same, so that its copy is written and its look-ups end.
 * @extends {EventEmitter<NodeEvents>}
 */
export class Node extends EventEmitter<NodeEvents> {
    /**
     * Reads the copy on disk, if there is one, and connects in the background.
     * @param {string | readonly string[]} address learning-svc: `host:port`, or several in an array or with commas.
     * @param {NodeOptions} [options]
     */
    constructor(address: string | readonly string[], options?: NodeOptions);
    /**
     * What was learned for a phrase, and what must not be offered for it. It waits for nothing.
     * @param {string} namespace
     * @param {string} phrase What the user said.
     * @param {ResolveOptions} [options]
     * @returns {Resolution}
     */
    resolve(namespace: string, phrase: string, options?: ResolveOptions): Resolution;
    /**
     * A text with what else to search for where terms stand in it. Nothing is replaced.
     * @param {string} namespace
     * @param {string} text
     * @param {object} [options]
     * @param {'keyword' | 'embedding'} [options.mode] For a search by words (the default), or by meaning.
     * @param {string} [options.user] Whose own synonyms count, too.
     * @returns {{ text: string, groups: { start: number, end: number, alternatives: string[] }[] }} `text`: as one text to search
     * for. `groups`: where terms stand, from left to right; `start` and `end` are indices of the text that was given.
     */
    expand(namespace: string, text: string, options?: {
        mode?: "keyword" | "embedding" | undefined;
        user?: string | undefined;
    }): {
        text: string;
        groups: {
            start: number;
            end: number;
            alternatives: string[];
        }[];
    };
    /**
     * What else to search for where a term stands: its representatives first.
     * @param {string} namespace
     * @param {string} term
     * @param {{ user?: string }} [options]
     * @returns {string[]}
     */
    synonyms(namespace: string, term: string, options?: {
        user?: string;
    }): string[];
    /**
     * How queries of a type are searched: as an operator set it, else with the defaults.
     * @param {string} namespace
     * @param {string} queryType
     * @returns {Tuning}
     */
    tuning(namespace: string, queryType: string): Tuning;
    /**
     * How far a source is trusted, and what decided it.
     * @param {string} namespace
     * @param {string} host
     * @returns {{ level: import('./messages').TrustLevel, weight: number, blocked: boolean, decidedBy: { pattern: string,
     * layer: string, decision: string, revision: number } | undefined }}
     */
    trust(namespace: string, host: string): {
        level: import("./messages").TrustLevel;
        weight: number;
        blocked: boolean;
        decidedBy: {
            pattern: string;
            layer: string;
            decision: string;
            revision: number;
        } | undefined;
    };
    /**
     * Whether the sources of a host must not be shown.
     * @param {string} namespace
     * @param {string} host
     * @returns {boolean}
     */
    isBlocked(namespace: string, host: string): boolean;
    /**
     * Orders results by the trust in their sources: without those of blocked ones, the best first. A result has the `host` of its
     * source and a `score`, 0 or more, which comes back multiplied by the weight of the trust.
     * @template {{ host: string, score: number }} Result
     * @param {string} namespace
     * @param {readonly Result[]} results
     * @returns {Result[]}
     */
    rank<Result extends {
        host: string;
        score: number;
    }>(namespace: string, results: readonly Result[]): Result[];
    /**
     * What people decided about a claim; undefined: nothing.
     * @param {string} namespace
     * @param {string} claimId
     * @returns {{ decision: 'REJECTED' | 'RESTORED', reasonCode: string, revision: number } | undefined}
     */
    claimState(namespace: string, claimId: string): {
        decision: "REJECTED" | "RESTORED";
        reasonCode: string;
        revision: number;
    } | undefined;
    /**
     * The label that a person gave an edge; undefined: the model's applies.
     * @param {string} namespace
     * @param {string} edgeId
     * @returns {{ relation: 'SUPPORTS' | 'REFUTES' | 'NEUTRAL', revision: number } | undefined}
     */
    edgeLabel(namespace: string, edgeId: string): {
        relation: "SUPPORTS" | "REFUTES" | "NEUTRAL";
        revision: number;
    } | undefined;
    /**
     * The prompt of a target as it is sent to the AI: with variables filled in, the newest examples, and a user's profile.
     * @param {string} namespace
     * @param {string} target
     * @param {object} [options]
     * @param {Record<string, string>} [options.variables] The texts of variables.
     * @param {string} [options.user] Whose profile to add.
     * @param {string} [options.label] The label that is followed. Default: production.
     * @param {'EN' | 'JA'} [options.language] The language of headings. Default: that of the examples.
     * @returns {{ text: string, version: number, settings: Record<string, string> } | undefined} Undefined if no version is current.
     */
    renderPrompt(namespace: string, target: string, options?: {
        variables?: Record<string, string> | undefined;
        user?: string | undefined;
        label?: string | undefined;
        language?: "EN" | "JA" | undefined;
    }): {
        text: string;
        version: number;
        settings: Record<string, string>;
    } | undefined;
    /**
     * The version of a prompt that is current under a label; undefined: none is.
     * @param {string} namespace
     * @param {string} target
     * @param {{ label?: string }} [options] `label`: the default is production.
     * @returns {{ text: string, version: number, variables: Record<string, string | null>, settings: Record<string, string>,
     * revision: number } | undefined} `variables`: what stands there where a call says nothing; null: each call must say.
     */
    prompt(namespace: string, target: string, options?: {
        label?: string;
    }): {
        text: string;
        version: number;
        variables: Record<string, string | null>;
        settings: Record<string, string>;
        revision: number;
    } | undefined;
    /**
     * The newest rated examples for what an AI is asked.
     * @param {string} namespace
     * @param {string} target
     * @returns {{ language: 'EN' | 'JA', good: Example[], bad: Example[] }}
     */
    examples(namespace: string, target: string): {
        language: "EN" | "JA";
        good: Example[];
        bad: Example[];
    };
    /**
     * What a user knows and wants to learn. Only of a node with `includeUserScoped`.
     * @param {string} namespace
     * @param {string} user
     * @returns {{ experienceYears: number | undefined, specialties: string[], knownTechnologies: string[], learningGoals: string[] }}
     */
    profile(namespace: string, user: string): {
        experienceYears: number | undefined;
        specialties: string[];
        knownTechnologies: string[];
        learningGoals: string[];
    };
    /**
     * How current it is.
     * @returns {Status}
     */
    status(): Status;
    /**
     * Waits until there is something to answer from: the copy on disk, or the first state from the service.
     * @param {{ timeout?: number, signal?: AbortSignal }} [options] `timeout`: milliseconds; then DEADLINE_EXCEEDED. Default: 10,000.
     */
    ready(options?: {
        timeout?: number;
        signal?: AbortSignal;
    }): Promise<void>;
    /**
     * Waits until everything at or below a revision is applied, to read what was just written.
     * @param {number} revision
     * @param {{ timeout?: number, signal?: AbortSignal }} [options] As of `ready`.
     */
    waitFor(revision: number, options?: {
        timeout?: number;
        signal?: AbortSignal;
    }): Promise<void>;
    /**
     * Waits until near answers are by models of all that was learned. Has them made, if nobody asked for one before.
     * @param {{ timeout?: number, signal?: AbortSignal }} [options] As of `ready`. Default: 60,000.
     */
    waitNear(options?: {
        timeout?: number;
        signal?: AbortSignal;
    }): Promise<void>;
    /**
     * Accepts this installation in place of the one whose resources it holds, once one of its servers answers.
     * @param {string} installation
     */
    acceptInstallation(installation: string): void;
    /** Brings the copy on disk up to date and stops. What was learned until then is still answered. */
    close(): Promise<void>;
    /** Lets `await using` close it. */
    [Symbol.asyncDispose](): Promise<void>;
    #private;
}
import { EventEmitter } from "events";
/** @typedef {{ input: string, output: string, corrected: string, issues: string[] }} Example A rated output. */
/**
 * One search of a plan.
 * @typedef {object} Attempt
 * @property {number} number Which one, from 1.
 * @property {string[]} namespaces Where to search; empty: where the backend does without being told.
 * @property {string[]} moreNamespaces Where to search beside that.
 * @property {number} minScore The score from which on results are given.
 * @property {number} topK How many results.
 * @property {boolean} expand Whether the text is embedded with its synonyms.
 */
/** How queries of one type are searched. */
declare class Tuning {
    /**
     * @internal
     * @param {any} told
     */
    constructor(told: any);
    /** How many results. @type {number} */
    topK: number;
    /** The score from which on results are given. @type {number} */
    minScore: number;
    /** From which score on a result is of which confidence, from the highest down. @type {{ name: string, minScore: number }[]} */
    confidences: {
        name: string;
        minScore: number;
    }[];
    /** What lists of results weigh when they are merged, by name. @type {Record<string, number>} */
    weights: Record<string, number>;
    /** Where to search; empty: where the backend does without being told. @type {string[]} */
    namespaces: string[];
    /** What the user is told when nothing was found; empty: the backend's own text. @type {string} */
    suggestion: string;
    /**
     * The confidence of a result with this score; undefined below all of them.
     * @param {number} score
     */
    confidence(score: number): string | undefined;
    /**
     * One search after another, until something is found.
     * @returns {Attempt[]}
     */
    retryPlan(): Attempt[];
    #private;
}
export {};
