/**
 * Which texts are paths of a workspace: relative, `/` between names, and no name that some system or some reader would take for
 * another one. Looks at the text only.
 */

/** Most bytes of a path, and of one name in it. */
const maxPathBytes = 4096
const maxNameBytes = 255

/** Names that are devices in every directory of Windows, whatever follows a dot. */
const devices = /^(?:con|prn|aux|nul|conin\$|conout\$|com[1-9¹²³]|lpt[1-9¹²³])$/i

/** What Windows would take for another name: it drops trailing dots and spaces, has streams, devices and short names. */
const windowsFault = (name: string): string | undefined => {
  if (/[. ]$/.test(name)) return "a name in it ends with a dot or a space, which is dropped"
  if (/[<>:"|?*]/.test(name)) return 'a name in it contains one of < > : " | ? *'
  if (devices.test(name.split(".")[0]!.trimEnd())) return "a name in it is that of a device"
  return /~\d/.test(name) ? "a name in it could be the short form of another one" : undefined
}

const nameFault = (name: string, platform: string): string | undefined => {
  if (name === "..") return "the path must not contain .."
  if (Buffer.byteLength(name) > maxNameBytes) return `a name in it has more than ${maxNameBytes} bytes`
  // Full-width dots and slashes and their like: a look-alike of a way out is nothing a file is called by accident.
  const plain = name.normalize("NFKC")
  if (plain !== name && (plain === "." || plain === ".." || /[/\\]/.test(plain))) {
    return "it contains characters that look like .. or a slash and are none"
  }
  return platform === "win32" ? windowsFault(name) : undefined
}

/** The names of a relative path, or why it is none. */
export const componentsOf = (path: string, platform: string = process.platform): ReadonlyArray<string> | string => {
  if (path === "") return "the path is empty"
  if (path.includes("\0")) return "the path contains a NUL character"
  if (!path.isWellFormed()) return "the path contains half a character"
  if (path.includes("\\")) return "components are separated by /, not by a backslash"
  if (path.startsWith("/") || /^[A-Za-z]:/.test(path)) return "the path must be relative to the workspace"
  if (Buffer.byteLength(path) > maxPathBytes) return "the path is too long"
  const parts = path.split("/").filter((part) => part !== "." && part !== "")
  for (const part of parts) {
    const fault = nameFault(part, platform)
    if (fault !== undefined) return fault
  }
  return parts.length === 0 || /\/\.?$/.test(path) ? "it names a directory, not a file" : parts
}

const respelled = (name: string): ReadonlyArray<string> =>
  [name.toUpperCase(), name.toLowerCase(), name.normalize("NFC"), name.normalize("NFD")].filter((one) => one !== name)

/**
 * Is this another spelling of a file's name (large and small letters, composed and decomposed accents), on a file system that
 * takes several for one? `isSame`: does that name lead to the same file. `names`: what is in the directory.
 */
export const isMisspelt = (
  name: string,
  isSame: (other: string) => boolean,
  names: () => ReadonlyArray<string>
): boolean => respelled(name).some(isSame) && !names().includes(name)
