/**
 * The arrays and objects that are open while JSON text is read, and the keys of the objects among them. All levels share
 * two arrays that only grow: a text of many small objects leaves no array behind for each.
 */

/** Keys are compared one by one up to here and hashed beyond, so that wide objects stay linear. */
const linearKeys = 8

export class JsonLevels {
  depth = 0
  /** Is the innermost one an object? */
  inObject = false
  /** Keys of all open objects, outermost first; what lies at `#count` and beyond is left over. */
  readonly #keys: Array<string> = []
  #count = 0
  /** Where the keys of the innermost level begin. */
  #base = 0
  /** Of every level around the innermost: twice its base, plus one for an object. */
  readonly #outer: Array<number> = []
  /** The keys of objects that have many, by depth. */
  #wide: Map<number, Set<string>> | undefined

  /** Back to no level at all. A key may be a part of its text, so none is kept. */
  clear(): void {
    this.depth = 0
    this.inObject = false
    this.#keys.fill("")
    this.#count = 0
    this.#base = 0
    this.#wide = undefined
  }

  open(object: boolean): void {
    this.#outer[this.depth] = this.#base * 2 + (this.inObject ? 1 : 0)
    this.depth += 1
    this.inObject = object
    this.#base = this.#count
  }

  close(): void {
    this.#wide?.delete(this.depth)
    this.depth -= 1
    this.#count = this.#base
    const outer = this.#outer[this.depth]!
    this.inObject = outer % 2 === 1
    this.#base = outer >> 1
  }

  /** False when the innermost object has this key already. */
  add(key: string): boolean {
    const hashed = this.#wide?.get(this.depth)
    if (hashed !== undefined) return hashed.size < hashed.add(key).size
    for (let at = this.#base; at < this.#count; at++) if (this.#keys[at] === key) return false
    this.#keys[this.#count++] = key
    if (this.#count - this.#base > linearKeys) this.#hash()
    return true
  }

  #hash(): void {
    this.#wide ??= new Map()
    this.#wide.set(this.depth, new Set(this.#keys.slice(this.#base, this.#count)))
    this.#count = this.#base
  }
}
