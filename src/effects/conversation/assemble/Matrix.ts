/** From axes to conversations (R-AILLY-10): the cross product, what is chosen of it, and names that no two share. Throws `Refusal`s. */
import { nearest } from "../../../tools/Nearest.ts"
import { ConversationError } from "../ConversationError.ts"
import { Refusal } from "../YamlDocuments.ts"
import { type Assembly, type Axis, inOrder } from "./Assembly.ts"
import { folded, problemOf } from "./FileNames.ts"
import { variableName } from "./PathTemplate.ts"

/** One conversation to be made. */
export interface Case {
  /** The file is called this, and `.yaml`. */
  readonly name: string
  readonly model: string
  readonly binding: Readonly<Record<string, string>>
}

/** What the command line says about one axis. */
export interface Variable {
  readonly axis: string
  readonly values: ReadonlyArray<string>
}

/** The caller asks for something that is not there, or cannot be. */
const unavailable = (option: string, reason: string): ConversationError =>
  new ConversationError({ path: "", place: option, reason })

/** More files than anybody meant to make. */
const most = 10_000

const listed = (names: ReadonlyArray<string>): string =>
  names.length > 20 ? `${names.slice(0, 20).join(", ")} and ${names.length - 20} more` : names.join(", ")

/** On an axis there is, variables choose among its values; others are axes of their own. */
export const withVariables = (axes: ReadonlyArray<Axis>, variables: ReadonlyArray<Variable>): ReadonlyArray<Axis> => {
  const wanted = new Map<string, Array<string>>()
  for (const { axis, values } of variables) wanted.set(axis, [...(wanted.get(axis) ?? []), ...values])
  const chosen = axes.map((axis) => {
    const names = wanted.get(axis.name)
    if (names === undefined) return axis
    wanted.delete(axis.name)
    const known = axis.values.map(({ name }) => name)
    for (const name of names) {
      if (known.includes(name)) continue
      const near = nearest(name, known)
      const hint = near === undefined ? `there are ${listed(known)}` : `did you mean ${near}?`
      throw unavailable("--var", `${axis.name} has no value ${name}: ${hint}`)
    }
    return { name: axis.name, values: axis.values.filter(({ name }) => names.includes(name)) }
  })
  const added = [...wanted].map(([name, values]): Axis => {
    if (!variableName.test(name)) throw unavailable("--var", `${JSON.stringify(name)} cannot be a variable`)
    for (const value of values) {
      const problem = problemOf(value)
      if (problem !== undefined) {
        throw unavailable("--var", `${JSON.stringify(value)} becomes part of a file's name: ${problem}`)
      }
    }
    return { name, values: values.map((value) => ({ name: value })) }
  })
  return [...chosen, ...added].sort((a, b) => inOrder(a.name, b.name))
}

interface Combination {
  readonly names: ReadonlyArray<string>
  readonly binding: Readonly<Record<string, string>>
  readonly models: ReadonlyArray<readonly [axis: string, model: string]>
}

const product = (axes: ReadonlyArray<Axis>): ReadonlyArray<Combination> => {
  const total = axes.reduce((count, { values }) => count * values.length, 1)
  if (total > most)
    throw new Refusal(
      ["matrix"],
      `${total} conversations are more than ${most}: choose with --var, or split the assembly`
    )
  return axes.reduce<ReadonlyArray<Combination>>(
    (all, axis) =>
      all.flatMap((one) =>
        axis.values.map(({ model, name }) => ({
          names: [...one.names, name],
          binding: { ...one.binding, [axis.name]: name },
          models: model === undefined ? one.models : [...one.models, [axis.name, model] as const]
        }))
      ),
    [{ names: [], binding: {}, models: [] }]
  )
}

const bindingText = (binding: Readonly<Record<string, string>>): string =>
  Object.entries(binding)
    .map(([axis, value]) => `${axis}=${value}`)
    .join(" ")

const modelOf = ({ binding, models }: Combination, assembly: Assembly): string => {
  const different = new Set(models.map(([, model]) => model))
  if (different.size > 1) {
    const said = models.map(([axis, model]) => `${axis} says ${model}`).join(", ")
    throw new Refusal(["matrix"], `${bindingText(binding)}: ${said}: only one axis may choose the model`)
  }
  const model = models[0]?.[1] ?? assembly.model
  if (model === undefined) {
    throw new Refusal(
      [],
      `model is missing${models.length > 0 || assembly.axes.length === 0 ? "" : `, and nothing in ${bindingText(binding)} has one`}`
    )
  }
  return model
}

/** Every conversation of the matrix, in the order of its axes. Refuses names that are unsafe or are one file for some system. */
export const casesOf = (assembly: Assembly, axes: ReadonlyArray<Axis>): ReadonlyArray<Case> => {
  const before = new Map<string, Combination>()
  return product(axes).map((one) => {
    const name = one.names.length === 0 ? "default" : one.names.join("-")
    const problem = problemOf(name)
    if (problem !== undefined)
      throw new Refusal(["matrix"], `${name}.yaml (${bindingText(one.binding)}) cannot be a file: ${problem}`)
    const other = before.get(folded(name))
    if (other !== undefined) {
      const both = `${bindingText(other.binding)} and ${bindingText(one.binding)}`
      const alike = other.names.join("-") === name ? "" : ", where letter case does not count"
      throw new Refusal(["matrix"], `${both} are both ${name}.yaml${alike}: rename a value`)
    }
    before.set(folded(name), one)
    return { name, model: modelOf(one, assembly), binding: one.binding }
  })
}

/** Those that were asked for, by the name of the file or by the value of an axis called `case`. None asked for: all. */
export const selected = (cases: ReadonlyArray<Case>, wanted: ReadonlyArray<string>): ReadonlyArray<Case> => {
  if (wanted.length === 0) return cases
  const isNamed = ({ binding, name }: Case, asked: string): boolean => name === asked || binding["case"] === asked
  for (const asked of wanted) {
    if (cases.some((one) => isNamed(one, asked))) continue
    throw unavailable("--case", `there is no case ${asked}: there are ${listed(cases.map(({ name }) => name))}`)
  }
  return cases.filter((one) => wanted.some((asked) => isNamed(one, asked)))
}
