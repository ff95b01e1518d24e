/**
 * Names of logical attempts. A key says which attempt it is. It is an unkeyed digest over place and arguments, so short
 * arguments can be guessed from it: it stays in the ledger and goes to the tool, and a trace without content holds a digest
 * of it instead. The runtime mints keys; a model never types one.
 */

import { hash } from "node:crypto"
import * as Result from "effect/Result"
import { canonical } from "../tools/JsonText.ts"
import { LedgerError } from "./EffectLedgerError.ts"

/** The place of a call in its run. `argumentsDigest` is the SHA-256 of the canonical arguments (RFC 8785) in hex. */
export interface CallPlace {
  readonly runId: string
  readonly step: string
  readonly ordinal: number
  readonly tool: string
  readonly argumentsDigest: string
}

/** SHA-256 in hex of the canonical arguments, as intents and keys carry it. */
export const argumentsDigest = (canonicalArguments: string): string => hash("sha256", canonicalArguments)

/** The key of a call that has no name of its own: the same place in the same run with the same arguments. */
export const keyOf = ({ argumentsDigest, ordinal, runId, step, tool }: CallPlace): string =>
  hash("sha256", canonical(["writ.key.run.v1", runId, step, ordinal, tool, argumentsDigest]))

const maxLength = 256

/**
 * The key of a call that its contract names (`invoice:order-431:v1`): 1 to 256 characters, valid for one tool and one major
 * version of its contract, in every run.
 */
export const businessKeyOf = (tool: string, contractMajor: number, name: string): Result.Result<string, LedgerError> =>
  name.trim() === "" || name.length > maxLength
    ? Result.fail(
        new LedgerError({
          operation: "key",
          reason: "invalid",
          message: `the contract of ${tool} gave a key of ${name.length} characters; it takes 1 to ${maxLength}, not all blank`
        })
      )
    : Result.succeed(hash("sha256", canonical(["writ.key.business.v1", tool, contractMajor, name])))
