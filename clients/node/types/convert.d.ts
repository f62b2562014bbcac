/**
 * What a request may be made of: fields that are left out have their default, and a time may be an ISO 8601 text.
 */
export type Input<T> = T extends Date ? Date | string : T extends Uint8Array ? Uint8Array : T extends (infer Element)[] ? readonly Input<Element>[] : T extends object ? { [Field in keyof T]?: Input<T[Field]>; } : T;
/**
 * An answer as programs read it: every field that holds nothing has its type's default; messages, and fields that may be
 * absent, are left out.
 * @param {string} name The message's name.
 * @param {any} wire Protobuf's JSON.
 * @returns {any}
 */
export function fromWire(name: string, wire: any): any;
/** @type {{ methods: Record<string, { request: string, response: string, paged?: string, stream?: boolean, upload?: boolean }>, messages: Record<string, Record<string, string>>, enums: Record<string, string> }} */
export const schema: {
    methods: Record<string, {
        request: string;
        response: string;
        paged?: string;
        stream?: boolean;
        upload?: boolean;
    }>;
    messages: Record<string, Record<string, string>>;
    enums: Record<string, string>;
};
/**
 * A message as it is sent: protobuf's JSON.
 * @param {string} name The message's name.
 * @param {unknown} value What it is made of.
 * @param {string} path Where it stands, for errors.
 * @returns {Record<string, unknown>}
 */
export function toWire(name: string, value: unknown, path?: string): Record<string, unknown>;
