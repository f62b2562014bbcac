declare namespace _exports {
    export { Addon, NativeClient, NativeStream, NativeUpload, NativeResolution, Maybe, NativeNode, NativeRecorder };
}
declare namespace _exports {
    namespace addon {
        let Client: new (settings: string) => NativeClient;
        let Node: new (settings: string, tell: (event: string) => void) => NativeNode;
        let Recorder: new (settings: string, namespace: string) => NativeRecorder;
        let nextId: () => number;
        let cancel: (id: number) => void;
        let normalize: (phrase: string) => string;
        let setLogger: (tell: ((entry: string) => void) | undefined, level: string) => void;
    }
}
export = _exports;
/**
 * The part in Rust. What is JSON in a string is `{"ok": …}` or `{"error": …}`. Errors that are thrown have the latter as message.
 */
type Addon = {
    Client: new (settings: string) => NativeClient;
    Node: new (settings: string, tell: (event: string) => void) => NativeNode;
    Recorder: new (settings: string, namespace: string) => NativeRecorder;
    /**
     * An id for something that can be cancelled.
     */
    nextId: () => number;
    cancel: (id: number) => void;
    normalize: (phrase: string) => string;
    setLogger: (tell: ((entry: string) => void) | undefined, level: string) => void;
};
type NativeClient = {
    call: (id: number, method: string, request: string, timeout: number) => Promise<string>;
    stream: (method: string, request: string, timeout: number) => NativeStream;
    upload: (method: string, timeout: number) => NativeUpload;
    close: () => void;
};
type NativeStream = {
    /**
     * The next message; null at the end.
     */
    next: (id: number) => Promise<string>;
    close: () => void;
};
type NativeUpload = {
    /**
     * Whether it takes more.
     */
    send: (id: number, request: string) => Promise<string>;
    finish: (id: number) => Promise<string>;
    close: () => void;
};
/**
 * What a phrase was resolved to: the choice, the revision that applied it, whether it is the user's own, whether something prohibited was
 * learned, whether to ask the user, the prohibited choices, the revision of the state, the phrase in normal form, the near
 * answer as JSON, whether near answers are given.
 */
type NativeResolution = [choice: string | null, revision: number, isUsers: boolean, isProhibited: boolean, hint: boolean, prohibited: string[] | null, stateRevision: number, phrase: string, near: string | null, nearStatus: string];
type Maybe = string | undefined;
type NativeNode = {
    resolve: (namespace: string, phrase: string, kind?: string, user?: string, choices?: string[], scores?: number[], near?: boolean) => NativeResolution;
    expand: (namespace: string, text: string, mode: string, user: Maybe) => string;
    synonyms: (namespace: string, term: string, user: Maybe) => string;
    tuning: (namespace: string, queryType: string) => string;
    trust: (namespace: string, host: string) => string;
    isBlocked: (namespace: string, host: string) => boolean;
    rank: (namespace: string, hosts: string[], scores: number[]) => [order: number[], scores: number[]];
    claimState: (namespace: string, claimId: string) => string;
    edgeLabel: (namespace: string, edgeId: string) => string;
    renderPrompt: (namespace: string, target: string, label: Maybe, variables: Record<string, string>, user: Maybe, language: Maybe) => string;
    prompt: (namespace: string, target: string, label: string) => string;
    examples: (namespace: string, target: string) => string;
    profile: (namespace: string, user: string) => string;
    status: () => string;
    ready: (id: number, timeout: number) => Promise<string>;
    waitFor: (id: number, revision: number, timeout: number) => Promise<string>;
    waitNear: (id: number, timeout: number) => Promise<string>;
    acceptInstallation: (installation: string) => void;
    close: (id: number) => Promise<string>;
};
type NativeRecorder = {
    query: (query: string) => boolean;
    interaction: (interaction: string) => boolean;
    flush: (id: number) => Promise<string>;
    counts: () => string;
    close: (id: number) => Promise<string>;
};
