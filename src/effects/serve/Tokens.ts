/**
 * Who may ask: bearer tokens by name. A token is compared as a digest and in constant time, with all of them, so that nothing
 * can be learned from how long a refusal took. Tokens are in no message.
 */
import { createHash, timingSafeEqual } from "node:crypto"
import * as Result from "effect/Result"

interface Token {
  readonly name: string
  readonly digest: Buffer
}

export interface Tokens {
  readonly names: ReadonlyArray<string>
  /** The name of whoever has this token. */
  readonly holder: (token: string) => string | undefined
}

const digestOf = (token: string): Buffer => createHash("sha256").update(token).digest()

const leastLength = 16

const problemOf = (name: string, token: string, taken: ReadonlyArray<Token>): string | undefined => {
  if (!/^[A-Za-z0-9_.-]{1,64}$/.test(name))
    return "its name is not 1 to 64 letters, digits, dots, dashes and underscores"
  if (!/^[\x21-\x7e]+$/.test(token)) return "its token holds something else than visible ASCII characters"
  if (token.length < leastLength) return `its token is shorter than ${leastLength} characters`
  if (taken.some((one) => one.name === name)) return `the name ${name} is there twice`
  return taken.some(({ digest }) => digest.equals(digestOf(token))) ? "its token is there twice" : undefined
}

/** Reads `NAME:TOKEN`, one a line; blank lines and lines that begin with `#` are left out. */
export const parse = (text: string): Result.Result<Tokens, string> => {
  const tokens: Array<Token> = []
  for (const [at, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim()
    if (line === "" || line.startsWith("#")) continue
    const colon = line.indexOf(":")
    const [name, token] = [line.slice(0, colon), line.slice(colon + 1)]
    const problem = colon < 0 ? "it is not NAME:TOKEN" : problemOf(name, token, tokens)
    if (problem !== undefined) return Result.fail(`line ${at + 1}: ${problem}`)
    tokens.push({ name, digest: digestOf(token) })
  }
  if (tokens.length === 0) return Result.fail("there is no token in it")
  return Result.succeed({
    names: tokens.map(({ name }) => name),
    holder: (token) => {
      const digest = digestOf(token)
      let found: string | undefined
      for (const one of tokens) if (timingSafeEqual(one.digest, digest)) found = one.name
      return found
    }
  })
}

/** The token of an `authorization` header. */
export const bearer = (header: string | undefined): string | undefined => /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1]
