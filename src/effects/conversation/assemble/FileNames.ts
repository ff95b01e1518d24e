/** Which names are safe as names of files, on every system a project may be copied to (R-AILLY-10). */

const reserved = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(?:\..*)?$/i

/** Room for `.yaml` and for what is put around a name while a file is written. */
const longest = 200

// What no file name can have somewhere, or what leads out of a directory, or what nobody sees.
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}/\\<>:"|?*\ufffe\uffff]/u

const shown = (char: string): string => {
  const code = char.codePointAt(0)!
  return /[\p{Cc}\p{Cf}\p{Z}]/u.test(char) || code >= 0xfffe
    ? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`
    : char
}

/** Why a text cannot be (part of) a file's name; `undefined` where it can. */
export const problemOf = (name: string): string | undefined => {
  if (name === "") return "it is empty"
  const found = unsafe.exec(name)?.[0]
  if (found !== undefined) return `it has a ${shown(found)} in it`
  if (name.startsWith(".")) return "it begins with a dot"
  if (/^[ \p{Z}]|[ .\p{Z}]$/u.test(name)) return "it begins or ends with a space, or ends with a dot"
  if (reserved.test(name)) return "some systems keep this name for a device"
  if (Buffer.byteLength(name) > longest) return `it is longer than ${longest} bytes`
  return undefined
}

/** Equal for names that are one file on a system that does not tell letter case or compositions of characters apart. */
export const folded = (name: string): string => name.normalize("NFC").toUpperCase().toLowerCase().normalize("NFC")
