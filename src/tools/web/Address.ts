/**
 * IP addresses as numbers, and which of them are not public. Follows the IANA registries of special-purpose addresses
 * (RFC 6890 and its successors): what is not plainly a public unicast address is named for what it is. Looks nothing up.
 */

/** `family` 4 with 32 bits, or 6 with 128. */
export interface Address {
  readonly family: 4 | 6
  readonly bits: bigint
}

export interface Range extends Address {
  readonly prefix: number
}

/** An address in its usual form, or nothing. Octal, hexadecimal and shortened IPv4 forms and zones are not read. */
export const parse = (text: string): Address | undefined => {
  if (text.includes(":")) return parse6(text)
  const bits = parse4(text)
  return bits === undefined ? undefined : { family: 4, bits }
}

const parse4 = (text: string): bigint | undefined => {
  const parts = text.split(".")
  if (parts.length !== 4 || !parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)) {
    return undefined
  }
  return parts.reduce((bits, part) => (bits << 8n) | BigInt(part), 0n)
}

const parse6 = (text: string): Address | undefined => {
  const [head, tail, ...more] = text.split("::")
  if (more.length > 0) return undefined
  const first = groupsOf(head!)
  const last = tail === undefined ? [] : groupsOf(tail)
  if (first === undefined || last === undefined) return undefined
  const missing = 8 - first.length - last.length
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined
  const groups = [...first, ...Array.from({ length: missing }, () => 0n), ...last]
  return { family: 6, bits: groups.reduce((bits, group) => (bits << 16n) | group, 0n) }
}

/** The 16-bit groups; the last two may be written as an IPv4 address. */
const groupsOf = (text: string): ReadonlyArray<bigint> | undefined => {
  if (text === "") return []
  const groups: Array<bigint> = []
  const parts = text.split(":")
  for (const [index, part] of parts.entries()) {
    if (/^[\da-f]{1,4}$/i.test(part)) groups.push(BigInt(`0x${part}`))
    else {
      const four = index === parts.length - 1 ? parse4(part) : undefined
      if (four === undefined) return undefined
      groups.push(four >> 16n, four & 0xffffn)
    }
  }
  return groups
}

/** The range of `a.b.c.d/n` or of one address. */
export const parseRange = (text: string): Range | undefined => {
  const [place, length, ...more] = text.split("/")
  const address = parse(place!)
  if (address === undefined || more.length > 0) return undefined
  const most = address.family === 4 ? 32 : 128
  if (length === undefined) return { ...address, prefix: most }
  return /^\d{1,3}$/.test(length) && Number(length) <= most ? { ...address, prefix: Number(length) } : undefined
}

const within = (range: Range, { bits, family }: Address): boolean => {
  const rest = BigInt((family === 4 ? 32 : 128) - range.prefix)
  return range.family === family && range.bits >> rest === bits >> rest
}

export const show = ({ bits, family }: Address): string => {
  const size = family === 4 ? 8n : 16n
  const parts = Array.from({ length: family === 4 ? 4 : 8 }, (_, index) => {
    const part = (bits >> (size * BigInt((family === 4 ? 3 : 7) - index))) & ((1n << size) - 1n)
    return part.toString(family === 4 ? 10 : 16)
  })
  return family === 4 ? parts.join(".") : new URL(`http://[${parts.join(":")}]`).hostname.slice(1, -1)
}

const ranges = (entries: ReadonlyArray<readonly [range: string, what: string]>) =>
  entries.map(([range, what]) => [parseRange(range)!, what] as const)

const special = ranges([
  ["0.0.0.0/8", "an address of this machine"],
  ["10.0.0.0/8", "a private address"],
  ["100.64.0.0/10", "an address of a carrier's own network (CGNAT)"],
  ["127.0.0.0/8", "a loopback address"],
  ["169.254.0.0/16", "a link-local address"],
  ["172.16.0.0/12", "a private address"],
  ["192.0.0.0/24", "an address reserved for protocols"],
  ["192.0.2.0/24", "an address for documentation"],
  ["192.88.99.0/24", "an address of the 6to4 relays"],
  ["192.168.0.0/16", "a private address"],
  ["198.18.0.0/15", "an address for benchmarks"],
  ["198.51.100.0/24", "an address for documentation"],
  ["203.0.113.0/24", "an address for documentation"],
  ["224.0.0.0/4", "a multicast address"],
  ["255.255.255.255/32", "the broadcast address"],
  ["240.0.0.0/4", "a reserved address"],
  ["::/128", "the unspecified address"],
  ["::1/128", "a loopback address"],
  ["::/96", "an IPv4-compatible address"],
  ["64:ff9b:1::/48", "an address of a local translator"],
  ["100::/64", "an address that discards"],
  ["2001::/32", "a Teredo address"],
  ["2001:2::/48", "an address for benchmarks"],
  ["2001:db8::/32", "an address for documentation"],
  ["2001::/23", "an address reserved for protocols"],
  ["2002::/16", "a 6to4 address"],
  ["3fff::/20", "an address for documentation"],
  ["5f00::/16", "an address of segment routing"],
  ["fc00::/7", "a unique local address"],
  ["fe80::/10", "a link-local address"],
  ["fec0::/10", "a site-local address"],
  ["ff00::/8", "a multicast address"]
])

/** Where clouds answer with a machine's credentials. No setting opens them. */
const metadata = ["169.254.169.254", "169.254.170.2", "169.254.170.23", "fd00:ec2::254", "fd00:ec2::23"]
const closed = ranges(
  [...metadata, "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd20:ce::254"].map(
    (address) => [address, "a cloud's metadata service"] as const
  )
)

const mapped = parseRange("::ffff:0:0/96")!
const translated = parseRange("64:ff9b::/96")!
const isatap = 0x0000_5efen

/** The IPv4 address that an IPv6 address leads to, where it is that address in another form. */
const inner = (address: Address): Address | undefined => {
  if (address.family === 4) return undefined
  const low = (address.bits >> 32n) & 0xffff_ffffn
  const isIsatap = low === isatap || low === (0x0200_0000n | isatap)
  return within(mapped, address) || within(translated, address) || isIsatap
    ? { family: 4, bits: address.bits & 0xffff_ffffn }
    : undefined
}

/** Why an address must not be connected to, as "it is …"; nothing if it may. */
export const objection = (address: Address, allowed: ReadonlyArray<Range>): string | undefined => {
  const four = inner(address)
  const plain = within(mapped, address) ? four! : address
  const said = (what: string, of: Address) => (of === address ? what : `${what} (${show(of)} in another form)`)
  for (const one of four === undefined ? [address] : [address, four]) {
    const service = closed.find(([range]) => within(range, one))
    if (service !== undefined) return said(service[1], one)
  }
  if (allowed.some((range) => within(range, plain))) return undefined
  for (const one of four === undefined ? [address] : [four, address]) {
    if (within(mapped, one)) continue
    const found = special.find(([range]) => within(range, one))
    if (found !== undefined) return said(found[1], one)
  }
  if (address.family === 4 || within(mapped, address) || within(translated, address)) return undefined
  // Of IPv6, only this block is handed out for the public Internet.
  return address.bits >> 125n === 1n ? undefined : "not a public address"
}

/** Do two texts name one address? An IPv4 address counts the same when IPv6 carries it. */
export const same = (one: string | undefined, other: string): boolean => {
  const [a, b] = [parse(one ?? ""), parse(other)].map((address) =>
    address !== undefined && within(mapped, address) ? inner(address)! : address
  )
  return a !== undefined && b !== undefined && a.family === b.family && a.bits === b.bits
}
