export type CallOptions = import("./connection").CallOptions;
export type Input<T> = import("./convert").Input<T>;
/** What an AI is asked with, how that gets better by ratings, and the profiles of users: asked of learning-svc. */
export class Outputs extends Service {
    /**
     * The prompt of a target as it is sent to the AI. A node renders it without a call.
     * @param {string} target
     * @param {CallOptions & Omit<Input<import('./messages').RenderPromptRequest>, 'target'>} [options]
     */
    renderPrompt(target: string, options?: CallOptions & Omit<Input<import("./messages").RenderPromptRequest>, "target">): Promise<import("./messages").RenderPromptResponse>;
    /**
     * The ratings of a target by version of its prompt.
     * @param {string} target
     * @param {CallOptions & { namespace?: string }} [options]
     */
    stats(target: string, options?: CallOptions & {
        namespace?: string;
    }): Promise<import("./messages").GetOutputStatsResponse>;
    /**
     * The same of every target, in the order of their names.
     * @param {Input<import('./messages').ListOutputStatsRequest>} [filter]
     * @param {CallOptions} [options]
     */
    allStats(filter?: Input<import("./messages").ListOutputStatsRequest>, options?: CallOptions): import("./connection.js").Pages<import("./messages").TargetStats>;
    /**
     * All versions of a prompt, the newest first.
     * @param {string} target
     * @param {Omit<Input<import('./messages').ListPromptVersionsRequest>, 'target'>} [filter]
     * @param {CallOptions} [options]
     */
    promptVersions(target: string, filter?: Omit<Input<import("./messages").ListPromptVersionsRequest>, "target">, options?: CallOptions): import("./connection.js").Pages<import("./messages").PromptVersion>;
    /**
     * What a proposed version would change on inputs that were rated.
     * @param {string} candidateId
     * @param {CallOptions & { namespace?: string, inputs?: number }} [options]
     */
    previewImprovement(candidateId: string, options?: CallOptions & {
        namespace?: string;
        inputs?: number;
    }): Promise<import("./messages").PreviewImprovementResponse>;
    /**
     * Generates a better prompt from ratings; it then awaits review.
     * @param {string} target
     * @param {CallOptions & { namespace?: string, label?: string, onBehalfOf?: string }} [options]
     */
    generateImprovement(target: string, options?: CallOptions & {
        namespace?: string;
        label?: string;
        onBehalfOf?: string;
    }): Promise<import("./messages").GenerateImprovementResponse>;
    /**
     * Makes a version current that was approved before.
     * @param {string} target
     * @param {number} version
     * @param {CallOptions & { namespace?: string, label?: string, reason?: string, onBehalfOf?: string }} [options]
     */
    usePromptVersion(target: string, version: number, options?: CallOptions & {
        namespace?: string;
        label?: string;
        reason?: string;
        onBehalfOf?: string;
    }): Promise<import("./messages").UsePromptVersionResponse>;
    /**
     * Rated outputs for training, the oldest first.
     * @param {string} target
     * @param {Omit<Input<import('./messages').ExportExamplesRequest>, 'target'>} [what]
     * @param {CallOptions} [options]
     */
    exportExamples(target: string, what?: Omit<Input<import("./messages").ExportExamplesRequest>, "target">, options?: CallOptions): AsyncIterableIterator<import("./messages").ExportExamplesResponse>;
    /**
     * What a user knows and wants to learn.
     * @param {string} userId
     * @param {CallOptions & { namespace?: string }} [options]
     */
    profile(userId: string, options?: CallOptions & {
        namespace?: string;
    }): Promise<import("./messages").GetProfileResponse>;
    /**
     * Changes a user's profile: the fields that are given, or those that `updateMask` names.
     * @param {string} userId
     * @param {Omit<Input<import('./messages').Profile>, 'userId'>} profile
     * @param {CallOptions & { updateMask?: string[] }} [options]
     */
    updateProfile(userId: string, profile: Omit<Input<import("./messages").Profile>, "userId">, options?: CallOptions & {
        updateMask?: string[];
    }): Promise<import("./messages").UpdateProfileResponse>;
    /**
     * Records what a user did, to suggest entries of the profile.
     * @param {string} userId
     * @param {Omit<Input<import('./messages').RecordActivityRequest>, 'userId'>} activity
     * @param {CallOptions} [options]
     */
    recordActivity(userId: string, activity: Omit<Input<import("./messages").RecordActivityRequest>, "userId">, options?: CallOptions): Promise<import("./messages").RecordActivityResponse>;
    /**
     * Has entries of a user's profile suggested.
     * @param {string} userId
     * @param {Omit<Input<import('./messages').GenerateSuggestionsRequest>, 'userId'>} [what]
     * @param {CallOptions} [options]
     */
    generateSuggestions(userId: string, what?: Omit<Input<import("./messages").GenerateSuggestionsRequest>, "userId">, options?: CallOptions): Promise<import("./messages").GenerateSuggestionsResponse>;
    /**
     * What is suggested for a user's profile.
     * @param {string} userId
     * @param {Omit<Input<import('./messages').ListSuggestionsRequest>, 'userId'>} [filter]
     * @param {CallOptions} [options]
     */
    suggestions(userId: string, filter?: Omit<Input<import("./messages").ListSuggestionsRequest>, "userId">, options?: CallOptions): import("./connection.js").Pages<import("./messages").ProfileSuggestion>;
    /**
     * The user takes a suggestion into the profile.
     * @param {string} userId
     * @param {string} candidateId
     * @param {CallOptions & { namespace?: string, etag?: string }} [options]
     */
    acceptSuggestion(userId: string, candidateId: string, options?: CallOptions & {
        namespace?: string;
        etag?: string;
    }): Promise<import("./messages").AcceptSuggestionResponse>;
    /**
     * The user does not want a suggestion.
     * @param {string} userId
     * @param {string} candidateId
     * @param {CallOptions & { namespace?: string, etag?: string, reason?: string }} [options]
     */
    rejectSuggestion(userId: string, candidateId: string, options?: CallOptions & {
        namespace?: string;
        etag?: string;
        reason?: string;
    }): Promise<import("./messages").ProfileSuggestion>;
    /**
     * Orders what a user may want to learn next.
     * @param {string} userId
     * @param {Omit<Input<import('./messages').RankLearningsRequest>, 'userId'>} what
     * @param {CallOptions} [options]
     */
    rankLearnings(userId: string, what: Omit<Input<import("./messages").RankLearningsRequest>, "userId">, options?: CallOptions): Promise<import("./messages").RankLearningsResponse>;
}
import { Service } from "./connection.js";
