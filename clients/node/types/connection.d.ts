/**
 * How a service is reached.
 */
export type ConnectionOptions = {
    /**
     * A PEM file of the CAs by which the service is verified. Default: the system's.
     */
    ca?: string | undefined;
    /**
     * A PEM file of the client's certificate, with `key`; read again for every connection.
     */
    certificate?: string | undefined;
    /**
     * A PEM file of its key.
     */
    key?: string | undefined;
    /**
     * A bearer token.
     */
    token?: string | undefined;
    /**
     * A file with a bearer token; read for every call, so it may be exchanged at any time.
     */
    tokenFile?: string | undefined;
    /**
     * Headers that are sent with every call.
     */
    headers?: Record<string, string> | undefined;
    /**
     * Addresses without `http://` or `https://` are of TLS; so they are with `ca` or `certificate`.
     */
    tls?: boolean | undefined;
};
/**
 * `namespace`: the search application of calls that name none. `timeout`: how many milliseconds a call may take with all its
 * attempts; 10,000 where neither this nor the call says.
 */
export type ServiceOptions = ConnectionOptions & {
    namespace?: string;
    timeout?: number;
};
/**
 * How one call is made.
 */
export type CallOptions = {
    /**
     * Ends the call; its promise is rejected with the signal's reason.
     */
    signal?: AbortSignal | undefined;
    /**
     * How many milliseconds the call may take, with all attempts. Default: the client's.
     */
    timeout?: number | undefined;
};
export type Methods = import("./messages").Methods;
export type Input<T> = import("./convert").Input<T>;
/**
 * Of messages of lists: what a page is a list of.
 */
export type ItemOf<Response> = { [Field in keyof Response]: Response[Field] extends (infer Item)[] ? Item : never; }[keyof Response];
/**
 * A list that is fetched page by page while it is read.
 */
export type Pages<Item> = AsyncIterableIterator<Item>;
/** What a client can be told beside that. */
export const SERVICE: string[];
/** The calls of a service: what {@link Feedback}, {@link Review}, {@link Evidence} and {@link Outputs} have in common. */
export class Service {
    /**
     * Connects with the first call, and again whenever the connection was lost.
     * @param {string | readonly string[]} address `host:port`; several, in an array or with commas, are those of replicas.
     * @param {ServiceOptions} [options]
     */
    constructor(address: string | readonly string[], options?: ServiceOptions);
    /** @internal */
    get native(): import("./addon.js").NativeClient;
    /**
     * Calls any method of the service by its name, for what has no method of its own here.
     * @template {keyof Methods} Method
     * @param {Method} method For example `emend.feedback.v1.FeedbackService/GetFeedback`.
     * @param {Input<Methods[Method]['request']>} request
     * @param {CallOptions} [options]
     * @returns {Promise<Methods[Method]['response']>}
     */
    call<Method extends keyof Methods>(method: Method, request: Input<Methods[Method]["request"]>, options?: CallOptions): Promise<Methods[Method]["response"]>;
    /**
     * Reads a list page by page. The calls are made as the items are read: at most one page waits.
     * @template {keyof Methods} Method
     * @param {Method} method
     * @param {Input<Methods[Method]['request']>} request
     * @param {CallOptions} [options] Each page has the whole timeout.
     * @returns {Pages<ItemOf<Methods[Method]['response']>>}
     */
    pages<Method extends keyof Methods>(method: Method, request: Input<Methods[Method]["request"]>, options?: CallOptions): Pages<ItemOf<Methods[Method]["response"]>>;
    /**
     * Reads what a method streams.
     * @template {keyof Methods} Method
     * @param {Method} method
     * @param {Input<Methods[Method]['request']>} request
     * @param {CallOptions} [options] The timeout is for its first message.
     * @returns {AsyncIterableIterator<Methods[Method]['response']>}
     */
    stream<Method extends keyof Methods>(method: Method, request: Input<Methods[Method]["request"]>, options?: CallOptions): AsyncIterableIterator<Methods[Method]["response"]>;
    /**
     * Calls a method that takes a stream of requests. They are taken as they are made, so there may be more than fit into memory; if
     * making one fails, the call is given up, and the service does nothing.
     * @template {keyof Methods} Method
     * @param {Method} method
     * @param {Iterable<Input<Methods[Method]['request']>> | AsyncIterable<Input<Methods[Method]['request']>>} requests
     * @param {CallOptions} [options] The timeout is for all of it. Default: ten minutes.
     * @returns {Promise<Methods[Method]['response']>}
     */
    upload<Method extends keyof Methods>(method: Method, requests: Iterable<Input<Methods[Method]["request"]>> | AsyncIterable<Input<Methods[Method]["request"]>>, options?: CallOptions): Promise<Methods[Method]["response"]>;
    /**
     * Who the caller is, and what it may call.
     * @param {CallOptions & { namespace?: string }} [options]
     */
    access(options?: CallOptions & {
        namespace?: string;
    }): Promise<import("./messages").GetAccessResponse>;
    /** Ends all calls that are under way, and closes the connection. */
    close(): void;
    /**
     * The namespace of a call that names none.
     * @internal
     * @param {string | undefined} [named]
     */
    namespaceOr(named?: string | undefined): string;
    /** Lets `using` close it. */
    [Symbol.dispose](): void;
    #private;
}
/**
 * What the part in Rust answered, or the error that it told.
 * @param {string} told JSON.
 */
export function answered(told: string): any;
/**
 * Calls what throws errors whose message is JSON.
 * @template T
 * @param {() => T} call
 * @returns {T}
 */
export function answeredSync<T>(call: () => T): T;
/**
 * What the part in Rust threw, as this package throws it.
 * @param {unknown} error
 */
export function asThrown(error: unknown): unknown;
/**
 * Runs what the part in Rust does until it is done, or the signal says that nobody waits any more.
 * @template T
 * @param {(id: number) => Promise<T>} begin Begins it, under an id by which it can be cancelled.
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<T>}
 */
export function cancellable<T>(begin: (id: number) => Promise<T>, signal: AbortSignal | undefined): Promise<T>;
/**
 * Refuses options that there are not: one that is misspelt would else say nothing.
 * @param {object} options
 * @param {readonly string[]} own Those beside the connection's.
 */
export function checkNames(options: object, own: readonly string[]): void;
/**
 * Makes something of settings. Errors name them as they are called here.
 * @template T
 * @param {() => T} make
 * @returns {T}
 */
export function configured<T>(make: () => T): T;
/**
 * The settings of a connection, as the part in Rust takes them.
 * @param {string | readonly string[]} address `host:port`, or several: those of replicas.
 * @param {ConnectionOptions} options How it is reached.
 * @param {number} [timeout] How many milliseconds a call may take.
 */
export function connectionSettings(address: string | readonly string[], options: ConnectionOptions, timeout?: number): {
    addresses: string[];
    ca: string | undefined;
    certificate: string | undefined;
    key: string | undefined;
    token: string | undefined;
    token_file: string | undefined;
    headers: Record<string, string> | undefined;
    tls: boolean | undefined;
    deadline: number | undefined;
};
/** @param {number} timeout */
export function timeoutOf(timeout: number): number;
