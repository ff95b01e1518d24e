/** The rules of a robots.txt (RFC 9309): which paths of a host are closed to a program like this one. Fetches nothing. */

interface Rule {
  readonly allow: boolean
  readonly pattern: string
}

/** Bytes of a robots.txt that count; the standard asks for 500 KiB at least. */
export const maxRobotsBytes = 512 * 1024

const maxRules = 5_000

interface Group {
  readonly agents: Array<string>
  readonly rules: Array<Rule>
}

const groupsOf = (text: string): ReadonlyArray<Group> => {
  const groups: Array<Group> = []
  let open: Group | undefined
  let naming = false
  for (const line of text.split(/\r\n|\r|\n/)) {
    const [, key, value] = /^\s*([a-z-]+)\s*:\s*([^#]*)/i.exec(line) ?? []
    if (key === undefined) continue
    const name = key.toLowerCase()
    if (name === "user-agent") {
      if (open === undefined || !naming) groups.push((open = { agents: [], rules: [] }))
      open.agents.push(value!.trim().toLowerCase())
      naming = true
    } else if (name === "allow" || name === "disallow") {
      naming = false
      // An empty rule closes nothing.
      if (value!.trim() !== "" && open !== undefined && open.rules.length < maxRules) {
        open.rules.push({ allow: name === "allow", pattern: normal(value!.trim()) })
      }
    }
  }
  return groups
}

/** One spelling for each path: what need not be encoded is not. */
const normal = (path: string): string =>
  path.replace(/%[\da-f]{2}/gi, (code) => {
    const character = String.fromCharCode(Number.parseInt(code.slice(1), 16))
    return /[A-Za-z\d\-._~]/.test(character) ? character : code.toUpperCase()
  })

/** `*` stands for anything, `$` at the end for the end. Goes back to the last star only, so a pattern cannot be made slow. */
const fits = (pattern: string, path: string): boolean => {
  const anchored = pattern.endsWith("$")
  const parts = (anchored ? pattern.slice(0, -1) : pattern).split("*")
  if (!path.startsWith(parts[0]!)) return false
  let at = parts[0]!.length
  for (const [index, part] of parts.entries()) {
    if (index === 0) continue
    const last = anchored && index === parts.length - 1
    const found = last ? path.length - part.length : path.indexOf(part, at)
    if (found < at || !path.startsWith(part, found)) return false
    at = found + part.length
  }
  return !anchored || at === path.length
}

/** May `path` (with its query) be read by `agent`? The longest rule decides, and `allow` where two are equally long. */
export const permits = (robots: string, agent: string, path: string): boolean => {
  const groups = groupsOf(robots)
  const own = groups.filter(({ agents }) => agents.includes(agent.toLowerCase()))
  const rules = (own.length > 0 ? own : groups.filter(({ agents }) => agents.includes("*"))).flatMap(
    (group) => group.rules
  )
  const wanted = normal(path)
  const fitting = rules.filter(({ pattern }) => fits(pattern, wanted))
  const longest = Math.max(...fitting.map(({ pattern }) => pattern.length))
  return fitting.length === 0 || fitting.some(({ allow, pattern }) => allow && pattern.length === longest)
}
