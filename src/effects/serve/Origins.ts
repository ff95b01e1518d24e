/**
 * Which requests a server takes that listens on loopback: those that name it by a name of loopback. A page of a stranger whose
 * own name leads here names itself, and is refused; so is one that says it comes from elsewhere.
 */

const loopbackHosts = new Set(["localhost", "127.0.0.1", "[::1]"])

/** Is this address reached from this machine alone? */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)

const hostIn = (header: string): string => header.toLowerCase().replace(/:\d+$/, "")

/** A `host` header that a server on loopback is meant by. `own` is what it listens on. */
export const isOwnHost = (header: string | undefined, own: string): boolean => {
  if (header === undefined) return false
  const host = hostIn(header)
  return loopbackHosts.has(host) || host === own.toLowerCase()
}

/** Has a page of another place sent this? Programs send no `origin`. */
export const isForeign = (origin: string | undefined, host: string | undefined): boolean => {
  if (origin === undefined) return false
  return !URL.canParse(origin) || new URL(origin).host !== host?.toLowerCase()
}
