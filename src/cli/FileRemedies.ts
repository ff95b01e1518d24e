/** What to do about a finding where the tool is a file: the key of its `.tool.json`, as plain data. Finds nothing itself. */

/** What may be amiss with a tool. */
export type FindingCode =
  | "says_nothing"
  | "self_report"
  | "retry_never"
  | "touches_missing"
  | "no_postcondition"
  | "no_description"
  | "not_in_grammar"

const contract = (text: string): string => `in its .tool.json, "contract": ${text}`

const remedies: Readonly<Record<Exclude<FindingCode, "no_description">, string>> = {
  says_nothing: contract(
    '{ "risk", "ledger", "retry", "reversible", "evidence", "post", "touches" }, or { "risk": "read", "touches": […] } if it only looks'
  ),
  self_report: contract(
    '{ "evidence": { "source": "probe", "describes": "…" } }, if the program looks at what it did before it answers'
  ),
  retry_never: contract('{ "retry": "safe" }'),
  touches_missing: contract('{ "touches": [{ "verb": "read", "resource": "kind:{argument}" }] }, [] for nothing'),
  no_postcondition:
    'in its .tool.json, "outputSchema": what its output is when it was done. A file holds no code that looks; a tool in TypeScript can (docs/contracts.md)',
  not_in_grammar:
    'in its .tool.json, say it in the "description" too, or use what a grammar carries: types, enum, const, bounds and lengths'
}

/** @param argument the argument that the finding is about, if it is about one */
export const fileRemedy = (code: FindingCode, argument: string | undefined): string => {
  if (code !== "no_description") return remedies[code]
  return argument === undefined
    ? 'in its .tool.json, "description": one sentence'
    : `in its .tool.json, "parameters": { "properties": { ${JSON.stringify(argument)}: { "description": "…" } } }, best with an example`
}
