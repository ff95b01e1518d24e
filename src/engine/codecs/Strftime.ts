/** Python's `strftime` for the directives chat templates use, in English and UTC. Anything else stays as written. */

const months = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December"
]
const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]

const two = (value: number): string => String(value).padStart(2, "0")

const directives: Readonly<Record<string, (date: Date) => string>> = {
  a: (date) => days[date.getUTCDay()]!.slice(0, 3),
  A: (date) => days[date.getUTCDay()]!,
  b: (date) => months[date.getUTCMonth()]!.slice(0, 3),
  B: (date) => months[date.getUTCMonth()]!,
  d: (date) => two(date.getUTCDate()),
  H: (date) => two(date.getUTCHours()),
  I: (date) => two(date.getUTCHours() % 12 || 12),
  m: (date) => two(date.getUTCMonth() + 1),
  M: (date) => two(date.getUTCMinutes()),
  p: (date) => (date.getUTCHours() < 12 ? "AM" : "PM"),
  S: (date) => two(date.getUTCSeconds()),
  y: (date) => two(date.getUTCFullYear() % 100),
  Y: (date) => String(date.getUTCFullYear()),
  "%": () => "%"
}

export const strftime = (date: Date, format: string): string =>
  format.replace(/%(.)/g, (whole, letter: string) => directives[letter]?.(date) ?? whole)
