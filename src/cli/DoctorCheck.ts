/** One thing that `writ doctor` looked at. Looks at nothing. */
/** `no`: something Writ needs does not work. `note`: something is missing that not every use needs. */
export interface Check {
  readonly name: string
  readonly state: "ok" | "note" | "no"
  readonly text: string
  readonly remedy?: string
}
