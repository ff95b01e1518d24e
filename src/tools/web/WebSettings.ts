/**
 * What a run lets the web tools do: plain data, since tools run in threads. Without it they refuse before any name is
 * looked up. It holds the key of a search service, so it belongs in no trace, no answer and no message.
 */

/** What was found, as a service gives it: `snippet` may be empty, and both texts may hold tags and entities. */
export interface Hit {
  readonly title: string
  readonly url: string
  readonly snippet: string
}

/** Bounds of one call, all of its redirects included. */
export interface WebLimits {
  /** Milliseconds from the first look-up to the last byte. */
  readonly millis: number
  /** Most bytes of one body as they arrive, and after decompression. */
  readonly bytes: number
  readonly decodedBytes: number
  /** Most bytes of one response's header. */
  readonly headerBytes: number
  readonly redirects: number
}

const defaultLimits: WebLimits = {
  millis: 20_000,
  bytes: 2 * 1024 * 1024,
  decodedBytes: 4 * 1024 * 1024,
  headerBytes: 16 * 1024,
  redirects: 5
}

/** Where `web_search` asks. Naming the service is the grant for its host, for searching and for nothing else. */
export type SearchSettings =
  /** An instance with the `json` format enabled; `url` is its base. */
  | { readonly provider: "searxng"; readonly url: string; readonly allowAddresses?: ReadonlyArray<string> }
  /** `url` stands in for the service's own address. */
  | {
      readonly provider: "brave"
      readonly key: string
      readonly url?: string
      readonly allowAddresses?: ReadonlyArray<string>
    }
  /** Answers by query, without a network: for tests and demonstrations. */
  | { readonly provider: "fixture"; readonly results: Readonly<Record<string, ReadonlyArray<Hit>>> }

export interface WebSettings {
  /**
   * Hosts that may be read: `example.org`, `*.example.org` (its subdomains, not itself), `example.org:8443`, or `*` for
   * every public host. Without a port, only 80 and 443.
   */
  readonly hosts: ReadonlyArray<string>
  /**
   * Addresses and ranges (`127.0.0.1`, `10.1.0.0/16`) that are reachable although they are not public. They count only for
   * hosts granted by their full name, and never open a cloud's metadata service.
   */
  readonly allowAddresses?: ReadonlyArray<string>
  readonly search?: SearchSettings
  readonly limits?: Partial<WebLimits>
  /** Default `obey`: a path that robots.txt closes is not read. */
  readonly robots?: "obey" | "ignore"
  /** Default `readable`: HTML is turned into text. `verbatim`: it stays as it came. */
  readonly html?: "readable" | "verbatim"
  /** Absolute directory of recorded answers. `record`: what is there is used, the rest fetched and kept. `replay`: no network. */
  readonly cache?: { readonly directory: string; readonly mode: "record" | "replay" }
  /** Certificate authorities (PEM) to trust besides the usual ones. */
  readonly authorities?: ReadonlyArray<string>
}

/** Can a header hold it? Whoever says that it cannot must not show it. */
export const isKey = (key: string): boolean => /^[\u0021-\u007e]{1,512}$/.test(key)

export const limitsOf = (web: WebSettings): WebLimits => ({ ...defaultLimits, ...web.limits })
