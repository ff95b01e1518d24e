/**
 * A small language for arithmetic: its own scanner and parser, evaluated as it is read. Nothing is ever run as code.
 *
 *   sum     = product { (+|-) product }                       - also − and –
 *   product = signed { (*|×|·|/|÷) signed }
 *   signed  = (+|-) signed | power                            -2^2 is -4
 *   power   = postfix [ (^|**) signed ]                       right to left: 2^3^2 is 512
 *   postfix = primary { % }                                   5% is 0.05; the remainder is mod(a, b)
 *   primary = number | pi | e | name(sum, …) | ( sum )
 */

/** Most UTF-16 units an expression may have, and how deep it may be nested. */
export const maxExpressionLength = 1_000
export const maxExpressionDepth = 64

/** Why an expression has no value: not an expression (`syntax`), or one without a finite number as its value. */
export interface ArithmeticFault {
  readonly syntax: boolean
  readonly reason: string
}

/**
 * The value of an expression, rounded to 15 significant digits so that 0.1 + 0.2 is 0.3; integers up to 2^53 stay exact.
 * Angles are radians, `log` is to base 10 unless `log(x, base)`, `round(x)` and `round(x, places)` round halves away
 * from zero, `mod` has the sign of its divisor.
 */
export const evaluate = (expression: string): number | ArithmeticFault => {
  if (expression.length > maxExpressionLength) {
    return { syntax: true, reason: `the expression is longer than ${maxExpressionLength} characters` }
  }
  try {
    return tidy(new Parser(expression).whole())
  } catch (cause) {
    if (cause instanceof Fault) return { syntax: cause.syntax, reason: cause.message }
    throw cause
  }
}

class Fault extends Error {
  readonly syntax: boolean

  constructor(syntax: boolean, message: string) {
    super(message)
    this.syntax = syntax
  }
}

const tidy = (value: number): number => {
  if (Number.isSafeInteger(value)) return value === 0 ? 0 : value
  const rounded = Number(value.toPrecision(15))
  return Number.isFinite(rounded) ? rounded : value
}

const roundTo = (value: number, places: number): number => {
  const factor = 10 ** places
  // Scaling first loses to binary fractions: 1.005 * 100 has to be seen as 100.5.
  return (Math.sign(value) * Math.round(tidy(Math.abs(value) * factor))) / factor
}

interface Operation {
  readonly least: number
  readonly most: number
  readonly apply: (values: ReadonlyArray<number>) => number
}

const unary = (f: (value: number) => number): Operation => ({ least: 1, most: 1, apply: ([value]) => f(value!) })

const operations: ReadonlyMap<string, Operation> = new Map<string, Operation>([
  ["sqrt", unary(Math.sqrt)],
  ["abs", unary(Math.abs)],
  ["floor", unary(Math.floor)],
  ["ceil", unary(Math.ceil)],
  ["ln", unary(Math.log)],
  ["exp", unary(Math.exp)],
  ["sin", unary(Math.sin)],
  ["cos", unary(Math.cos)],
  ["tan", unary(Math.tan)],
  [
    "round",
    { least: 1, most: 2, apply: ([value, places = 0]) => (isPlaces(places) ? roundTo(value!, places) : Number.NaN) }
  ],
  [
    "log",
    {
      least: 1,
      most: 2,
      apply: ([value, base]) => (base === undefined ? Math.log10(value!) : Math.log(value!) / Math.log(base))
    }
  ],
  ["mod", { least: 2, most: 2, apply: ([value, by]) => value! - by! * Math.floor(value! / by!) }],
  ["min", { least: 1, most: 100, apply: (values) => Math.min(...values) }],
  ["max", { least: 1, most: 100, apply: (values) => Math.max(...values) }]
])

const isPlaces = (places: number): boolean => Number.isInteger(places) && Math.abs(places) <= 15

const constants: ReadonlyMap<string, number> = new Map([
  ["pi", Math.PI],
  ["π", Math.PI],
  ["e", Math.E]
])

/** What people and models type for an operator, and the operator. */
const spellings: ReadonlyMap<string, string> = new Map([
  ["−", "-"],
  ["–", "-"],
  ["×", "*"],
  ["·", "*"],
  ["÷", "/"],
  ["**", "^"]
])

interface Token {
  readonly kind: "number" | "name" | "sign" | "end"
  readonly text: string
  /** Counted from 1, as people do. */
  readonly position: number
}

const tokenPattern =
  /(?<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?<name>\p{L}[\p{L}\p{N}_]*)|(?<sign>\*\*|[+\-−–*×·/÷^%(),])/uy

const tokensOf = (text: string): ReadonlyArray<Token> => {
  const tokens: Array<Token> = []
  let at = 0
  for (;;) {
    while (/\s/.test(text[at] ?? "")) at += 1
    if (at >= text.length) return [...tokens, { kind: "end", text: "", position: text.length + 1 }]
    tokenPattern.lastIndex = at
    const groups = tokenPattern.exec(text)?.groups
    if (groups === undefined) {
      const seen = String.fromCodePoint(text.codePointAt(at)!)
      throw new Fault(true, `unexpected '${seen}' at character ${at + 1}`)
    }
    const kind = groups["number"] !== undefined ? "number" : groups["name"] !== undefined ? "name" : "sign"
    const found = groups[kind]!
    tokens.push({ kind, text: spellings.get(found) ?? found, position: at + 1 })
    at += found.length
  }
}

class Parser {
  readonly tokens: ReadonlyArray<Token>
  next = 0
  depth = 0

  constructor(text: string) {
    this.tokens = tokensOf(text)
  }

  whole(): number {
    if (this.peek().kind === "end") throw new Fault(true, "the expression is empty")
    const value = this.sum()
    const rest = this.peek()
    if (rest.kind === "end") return value
    const percent = this.tokens[this.next - 1]?.text === "%"
    throw this.unexpected(rest, percent ? "; % means percent, the remainder is mod(a, b)" : "")
  }

  sum(): number {
    let value = this.product()
    for (;;) {
      const { position, text } = this.peek()
      if (text !== "+" && text !== "-") return value
      this.next += 1
      const right = this.product()
      value = this.finite(text === "+" ? value + right : value - right, position)
    }
  }

  product(): number {
    let value = this.signed()
    for (;;) {
      const { position, text } = this.peek()
      if (text !== "*" && text !== "/") return value
      this.next += 1
      const right = this.signed()
      if (text === "/" && right === 0) throw new Fault(false, `division by zero at character ${position}`)
      value = this.finite(text === "*" ? value * right : value / right, position)
    }
  }

  signed(): number {
    const { position, text } = this.peek()
    if (text !== "+" && text !== "-") return this.power()
    this.next += 1
    const value = this.deeper(position, () => this.signed())
    return text === "-" ? -value : value
  }

  power(): number {
    const base = this.postfix()
    const { position, text } = this.peek()
    if (text !== "^") return base
    this.next += 1
    const exponent = this.deeper(position, () => this.signed())
    if (base === 0 && exponent < 0) throw new Fault(false, `division by zero at character ${position}`)
    return this.finite(base ** exponent, position)
  }

  postfix(): number {
    let value = this.primary()
    while (this.peek().text === "%") {
      this.next += 1
      value /= 100
    }
    return value
  }

  primary(): number {
    const token = this.peek()
    this.next += 1
    if (token.kind === "number") return this.finite(Number(token.text), token.position)
    if (token.kind === "name") return this.named(token)
    if (token.text !== "(") throw this.unexpected(token)
    const value = this.deeper(token.position, () => this.sum())
    this.close(token)
    return value
  }

  named(token: Token): number {
    const name = token.text.toLowerCase()
    const constant = constants.get(name)
    if (constant !== undefined) return constant
    const operation = operations.get(name)
    if (operation === undefined) {
      const known = `${[...operations.keys()].join(" ")} pi e`
      throw new Fault(true, `unknown name '${token.text.slice(0, 40)}' at character ${token.position}; known: ${known}`)
    }
    const open = this.peek()
    if (open.text !== "(") throw new Fault(true, `expected '(' after ${name} at character ${open.position}`)
    this.next += 1
    const values: Array<number> = []
    do {
      values.push(this.deeper(open.position, () => this.sum()))
    } while (this.peek().text === "," && this.next++ >= 0)
    this.close(open)
    if (values.length < operation.least || values.length > operation.most) {
      const count = operation.least === operation.most ? operation.least : `${operation.least} to ${operation.most}`
      throw new Fault(true, `${name} takes ${count} values, got ${values.length} at character ${token.position}`)
    }
    if (name === "mod" && values[1] === 0) throw new Fault(false, `division by zero at character ${token.position}`)
    return this.finite(operation.apply(values), token.position)
  }

  close(open: Token): void {
    const token = this.peek()
    if (token.text !== ")") {
      if (token.kind === "end") throw new Fault(true, `the '(' at character ${open.position} is not closed`)
      throw this.unexpected(token)
    }
    this.next += 1
  }

  deeper(position: number, parse: () => number): number {
    if (this.depth >= maxExpressionDepth)
      throw new Fault(true, `nested deeper than ${maxExpressionDepth} levels at character ${position}`)
    this.depth += 1
    const value = parse()
    this.depth -= 1
    return value
  }

  finite(value: number, position: number): number {
    if (Number.isFinite(value)) return value
    throw new Fault(
      false,
      `${Number.isNaN(value) ? "the result is not a real number" : "the result is too large"} at character ${position}`
    )
  }

  peek(): Token {
    return this.tokens[this.next] ?? this.tokens.at(-1)!
  }

  unexpected(token: Token, hint = ""): Fault {
    if (token.kind === "end") return new Fault(true, `the expression ends where a number was expected${hint}`)
    return new Fault(true, `unexpected '${token.text.slice(0, 40)}' at character ${token.position}${hint}`)
  }
}
