/** The headers of a provider's answer. */

/** Lower-case names. Multi-valued fields as arrays. No prototype. */
export type ResponseHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;
