import { assert, describe, it } from "@effect/vitest"
import { componentsOf, isMisspelt } from "../../src/tools/WorkspacePath.ts"

describe("WorkspacePath.componentsOf", () => {
  it("gives the names of a relative path, without what means nothing", () => {
    assert.deepStrictEqual(componentsOf("./a//b/./c.txt", "linux"), ["a", "b", "c.txt"])
    assert.deepStrictEqual(componentsOf("..notes/...", "linux"), ["..notes", "..."])
  })

  it("takes names that Windows would take for others only where it is not Windows", () => {
    const names = [
      "notes.md.",
      "notes.md ",
      "notes.md::$DATA",
      "notes.md:stream",
      "CON",
      "con.txt",
      "sub/NUL .log",
      "COM1.txt",
      "LPT\u00b9",
      "conin$",
      "SECRET~1.TXT",
      "a?",
      "a*",
      "a|b",
      'a"b'
    ]
    for (const name of names) {
      assert.isString(componentsOf(name, "win32"), name)
      assert.isArray(componentsOf(name, "linux"), name)
    }
    for (const name of ["console.txt", "nul-value.md", "com10", "a~b", "~a"]) {
      assert.isArray(componentsOf(name, "win32"), name)
    }
  })
})

describe("WorkspacePath.isMisspelt", () => {
  /** A directory whose names are compared as `key` says. */
  const misspelt = (name: string, names: ReadonlyArray<string>, key: (name: string) => string) =>
    isMisspelt(
      name,
      (other) => names.some((one) => key(one) === key(other) && key(one) === key(name)),
      () => names
    )

  it("is true for another spelling where the file system takes several for one", () => {
    const small = (name: string) => name.toLowerCase()
    assert.isTrue(misspelt("SECRET.txt", ["secret.txt"], small))
    assert.isTrue(misspelt("secret.TXT", ["Secret.txt"], small))
    assert.isFalse(misspelt("Secret.txt", ["Secret.txt"], small))
    const composed = (name: string) => name.normalize("NFC")
    assert.isTrue(misspelt("cafe\u0301", ["caf\u00e9"], composed))
    assert.isFalse(misspelt("caf\u00e9", ["caf\u00e9"], composed))
  })

  it("is false where every spelling is a name of its own", () => {
    const exact = (name: string) => name
    assert.isFalse(misspelt("a", ["a", "A"], exact))
    assert.isFalse(misspelt("1", ["1"], exact))
  })
})
