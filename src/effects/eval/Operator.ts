/** The comparisons of a suite: equality of any two JSON values, order of numbers. */
import type { Json } from "../../tools/JsonText.ts"
import * as JsonText from "../../tools/JsonText.ts"

export const operators = ["==", "!=", "<", "<=", ">", ">="] as const

export type Operator = (typeof operators)[number]

/** Deep equality. The order of keys does not count, the order of lists does. */
export const equal = (a: Json, b: Json): boolean => {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    return a.every((one, at) => equal(one, b[at]!))
  }
  if (!JsonText.isObject(a) || !JsonText.isObject(b)) return false
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && equal(a[key]!, b[key]!))
}

/** Does `value` contain `part`? Of an object part only its own keys are asked for, at every level; all else is equality. */
export const contains = (value: Json, part: Json): boolean => {
  if (!JsonText.isObject(part)) return equal(value, part)
  if (!JsonText.isObject(value)) return false
  return Object.keys(part).every((key) => Object.hasOwn(value, key) && contains(value[key]!, part[key]!))
}

export const isOrder = (op: Operator): boolean => op !== "==" && op !== "!="

/** @param op for numbers; equality holds as `equal` says */
export const holds = (op: Operator, left: number, right: number): boolean => {
  switch (op) {
    case "==":
      return left === right
    case "!=":
      return left !== right
    case "<":
      return left < right
    case "<=":
      return left <= right
    case ">":
      return left > right
    case ">=":
      return left >= right
  }
}
