/** Says of the place of a ledger whether it is a server's address, and shows one without its password. Opens nothing. */

/** `postgres://…` or `postgresql://…`; everything else is a file. */
export const isAddress = (place: string): boolean => /^postgres(?:ql)?:\/\//i.test(place)

/** The place in messages: an address without what is secret in it, a file as it is. */
export const shownPlace = (place: string): string => {
  if (!isAddress(place)) return place
  if (!URL.canParse(place)) return "postgres://…"
  const { hash: _, host, pathname, protocol, searchParams, username } = new URL(place)
  searchParams.delete("password")
  const user = username === "" ? "" : `${username}@`
  const rest = searchParams.size === 0 ? "" : `?${decodeURIComponent(searchParams.toString().replaceAll("+", " "))}`
  return `${protocol}//${user}${host}${pathname}${rest}`
}
