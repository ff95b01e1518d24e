/**
 * Statements that tools hand over, as plain data: what one is, how many there may be, and who may hand over any. Whether a
 * database takes them is the ledger's business, and nothing here executes anything.
 */
import type { Contract } from "./Contract.ts"
import type { ProducedArtifact, StagedStatement, StagedValue } from "./ToolCall.ts"
import type { Staging } from "./ToolContext.ts"

/** Most statements one call may hand over. */
export const maxStatements = 64

/** Most bytes the statements and values of one call may have together. */
export const maxStagedBytes = 1024 * 1024

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0

const isValue = (value: unknown): value is StagedValue => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true
    case "number":
      return Number.isFinite(value)
    case "bigint":
      return BigInt.asIntN(64, value) === value
    default:
      return value === null || value instanceof Uint8Array
  }
}

/** Plain data of our own: the tool may go on using its buffers. Throws where it is no statement. */
export const copyOf = ({ parameters = [], rows, sql }: Staging): StagedStatement => {
  if (typeof sql !== "string" || !Array.isArray(parameters) || !(rows === undefined || isCount(rows))) {
    throw new TypeError("a staged statement has sql, a list of parameters, and maybe a number of rows")
  }
  const wrong = parameters.findIndex((value) => !isValue(value))
  if (wrong !== -1) {
    const what = "null, a boolean, a finite number, a bigint of 64 bits, a string or a Uint8Array"
    throw new TypeError(`parameter $${wrong + 1} of a staged statement is none of ${what}`)
  }
  const values = parameters.map((value: StagedValue) => (value instanceof Uint8Array ? Uint8Array.from(value) : value))
  return { sql, parameters: values, ...(rows === undefined ? {} : { rows }) }
}

const sizeOf = (value: StagedValue): number =>
  typeof value === "string" ? Buffer.byteLength(value) : value instanceof Uint8Array ? value.byteLength : 8

const bytesOf = ({ parameters, sql }: StagedStatement): number =>
  parameters.reduce((sum: number, value) => sum + sizeOf(value), Buffer.byteLength(sql))

/** Why what a successful call handed over cannot be kept, in words. Nothing of it has been executed. */
export const stagingFault = (
  contract: Contract,
  staged: ReadonlyArray<StagedStatement>,
  artifacts: ReadonlyArray<ProducedArtifact>
): string | undefined => {
  if (staged.length === 0) return undefined
  if (contract.stages !== true) {
    return `it staged ${staged.length} statements, and its contract does not say stages: true; none was executed`
  }
  if (artifacts.length > 0) {
    return "it staged statements and handed over artifacts: one call does one of the two; nothing was kept"
  }
  const bytes = staged.reduce((sum, statement) => sum + bytesOf(statement), 0)
  if (staged.length <= maxStatements && bytes <= maxStagedBytes) return undefined
  const has = `the staged statements are ${staged.length} with ${bytes} bytes`
  return `${has}, at most ${maxStatements} with ${maxStagedBytes} are allowed`
}
