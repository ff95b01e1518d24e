/**
 * Where an OpenAI-compatible server is, and whether a key may be sent there. Checks texts only; connects to nothing.
 */
import * as Result from "effect/Result"

export interface Address {
  /** As it is shown: no credentials, no query. */
  readonly shown: string
  /** Where `/chat/completions` hangs: the address as given, with `/v1` if it has no path. */
  readonly api: string
  /** Where a server's own paths hang (`/props`, `/tokenize`): the address without a last `/v1`. */
  readonly root: string
  /** Nobody in between can listen: encrypted, or on this machine. */
  readonly confidential: boolean
}

/** `localhost`, `127.0.0.0/8`, `::1`, as a URL spells them once it is parsed. */
const isLoopback = (host: string): boolean =>
  host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host)

/** Reads the address of a server, or says what is wrong with it; never repeats what may be a secret. */
export const parseAddress = (text: string): Result.Result<Address, string> => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === "") {
    return Result.fail("expected the address of a server, like http://127.0.0.1:8080")
  }
  if (url.username !== "" || url.password !== "") {
    return Result.fail("the address holds a name or a password: a key is taken from the environment")
  }
  if (url.search !== "" || url.hash !== "") {
    return Result.fail("the address holds more than a host and a path: leave out what follows ? or #")
  }
  const path = url.pathname.replace(/\/+$/, "")
  const api = `${url.origin}${path === "" ? "/v1" : path}`
  return Result.succeed({
    shown: `${url.origin}${path}`,
    api,
    root: api.replace(/\/v1$/, ""),
    confidential: url.protocol === "https:" || isLoopback(url.hostname)
  })
}

/** May these characters be the value of a header? A key with others was cut or copied wrong. */
export const isKey = (key: string): boolean => /^[\x21-\x7e]{1,4096}$/.test(key)
