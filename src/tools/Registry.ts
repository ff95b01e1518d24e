/**
 * A frozen, ordered set of contracted tools: looked up by name, shown to a model as specs, identified by a hash.
 * Whatever cannot be checked later (a bad name, a duplicate, a schema that does not compile) is refused here, by name.
 */

import { createHash } from "node:crypto"
import * as Tool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import {
  type Contract,
  cautious,
  contractOf,
  faultsOf,
  functionsOf,
  leavesNothing,
  Stated,
  type Statement,
  statementOf
} from "./Contract.ts"
import { compile as compileEffectSchema } from "./EffectSchema.ts"
import { asEffect, BadResult, toJson } from "./JsonResult.ts"
import { compile as compileJsonSchema } from "./JsonSchema.ts"
import { canonical, type Json, type JsonObject } from "./JsonText.ts"
import { keyed, takesKey } from "./KeyParameter.ts"
import { nearest } from "./Nearest.ts"
import { parametersOf } from "./Parameters.ts"
import { type Binding, type BoundTerms, bind, type Terms } from "./Terms.ts"
import type { Problem, ToolSpec } from "./ToolCall.ts"
import type { ToolContext } from "./ToolContext.ts"
import { ToolError } from "./ToolError.ts"
import { isSealed, type ValidatedArguments } from "./Validation.ts"

export type { ValidatedArguments } from "./Validation.ts"

/** One tool, checked at registration and ready to be called. */
export interface RegisteredTool {
  readonly name: string
  readonly spec: ToolSpec
  readonly contract: Contract
  /** The contract's functions of the arguments. */
  readonly terms: BoundTerms
  /** SHA-256 (hex) of the canonical JSON of spec and contract. */
  readonly hash: string
  /** Each of its calls is a run of its own. */
  readonly isRun?: true
  /** Untrusted arguments to validated ones, or every problem they have. */
  readonly check: (args: JsonObject) => Result.Result<ValidatedArguments, ReadonlyArray<Problem>>
  /** Decode, handler, encode, in this thread. Only `Execution` calls it. */
  readonly run: (args: ValidatedArguments) => Effect.Effect<Json, ToolError, ToolContext>
}

export interface Registry {
  /** In the order they were registered, which is the order a model sees. */
  readonly tools: ReadonlyArray<RegisteredTool>
  readonly specs: ReadonlyArray<ToolSpec>
  readonly get: (name: string) => RegisteredTool | undefined
  /** SHA-256 (hex) over the tools' hashes in order. */
  readonly hash: string
}

/** A tool that cannot be registered, and why. */
export class RegistrationError extends Schema.TaggedError<RegistrationError>()("RegistrationError", {
  tool: Schema.String,
  message: Schema.String
}) {}

/**
 * One function per tool of a toolkit. A handler fails with `ToolError` (or the failure its tool declares) and may use
 * `ToolContext`; whatever else it needs is taken from the context the registry is made in.
 */
export type Handlers<Tools extends Record<string, Tool.Any>, R = never> = {
  readonly [Name in keyof Tools]: (
    params: Tool.Parameters<Tools[Name]>,
    context: Toolkit.HandlerContext<Tools[Name]>
  ) => Effect.Effect<Tool.Success<Tools[Name]>, ToolError | Tool.Failure<Tools[Name]>, ToolContext | R>
}

/** What handlers need beyond `ToolContext`. */
type ServicesOf<H> = Exclude<
  {
    readonly [Name in keyof H]: H[Name] extends (...args: never) => Effect.Effect<infer _A, infer _E, infer R>
      ? R
      : never
  }[keyof H],
  ToolContext
>

/** Registers the tools of an `effect/ai` toolkit, all of them or those of `only`, in the order given. */
export const fromToolkit = Effect.fnUntraced(function* <
  Tools extends Record<string, Tool.Any>,
  // biome-ignore lint/suspicious/noExplicitAny: whatever services the handlers need, `ServicesOf` reads off their types
  H extends Handlers<Tools, any>
>(
  toolkit: Toolkit.Toolkit<Tools>,
  handlers: H,
  options?: { readonly only?: ReadonlyArray<string> }
): Effect.fn.Return<Registry, RegistrationError, ServicesOf<H>> {
  const context = yield* Effect.context<ServicesOf<H>>()
  const names = Object.keys(toolkit.tools)
  const tools: Array<RegisteredTool> = []
  for (const name of yield* known(names, options?.only ?? names)) {
    const handler: AnyHandler | undefined = handlers[name as keyof H] as never
    if (typeof handler !== "function") return yield* refuse(name, "it has no handler")
    tools.push(yield* registerEffectTool(toolkit.tools[name]!, handler, context))
  }
  return yield* make(tools)
})

/** One registry with the tools of several, in order. A name may occur once. */
export const merge = (...registries: ReadonlyArray<Registry>): Effect.Effect<Registry, RegistrationError> =>
  make(registries.flatMap((registry) => registry.tools))

/** The named tools only, in the order of the names. An unknown name is refused with the nearest known one. */
export const pick = (registry: Registry, names: ReadonlyArray<string>): Effect.Effect<Registry, RegistrationError> =>
  known(
    registry.tools.map((tool) => tool.name),
    names
  ).pipe(Effect.flatMap((wanted) => make(wanted.map((name) => registry.get(name)!))))

/** A registry of tools that are registered already. Refuses a name that occurs twice. */
export const make = (tools: ReadonlyArray<RegisteredTool>): Effect.Effect<Registry, RegistrationError> => {
  const byName = new Map<string, RegisteredTool>()
  for (const tool of tools) {
    if (byName.has(tool.name)) return refuse(tool.name, "there are two tools of this name")
    byName.set(tool.name, tool)
  }
  return Effect.succeed(sealed(tools, byName))
}

const sealed = (tools: ReadonlyArray<RegisteredTool>, byName: ReadonlyMap<string, RegisteredTool>): Registry =>
  Object.freeze({
    tools: Object.freeze([...tools]),
    specs: Object.freeze(tools.map((tool) => tool.spec)),
    get: (name: string) => byName.get(name),
    hash: sha256(tools.map((tool) => tool.hash).join("\n"))
  })

/** A tool whose schema arrives as JSON: from a file, from a server, from another program. */
export interface DynamicTool {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments object: 2020-12, or draft-07 by `$schema`. Shown to the model as it is. */
  readonly schema: JsonObject
  /** What is not said is assumed to be dangerous. */
  readonly contract?: Partial<Contract>
  /** The contract's functions. They get the effective arguments, and the result as JSON. */
  readonly terms?: Terms<JsonObject, Json>
  /** Time for one execution, for a tool that says nothing else of itself. */
  readonly deadlineMillis?: number
  /** What is around a running call, for a tool that says nothing else of itself. */
  readonly isolation?: Contract["isolation"]
  /** What else makes it this tool and no other, the program it starts for instance: part of its hash. */
  readonly identity?: JsonObject
  /** Gets the effective arguments. What it returns must be JSON. */
  readonly run: (args: JsonObject) => Effect.Effect<unknown, ToolError, ToolContext>
}

/** Registers a tool declared by a JSON Schema; ajv is loaded by the first one. */
export const dynamic = Effect.fnUntraced(function* (
  tool: DynamicTool
): Effect.fn.Return<RegisteredTool, RegistrationError> {
  yield* checkName(tool.name)
  const faults = faultsOf({ ...tool.contract, ...tool.terms } as Partial<Statement>)
  if (faults.length > 0) return yield* refuse(tool.name, faults.join("; "))
  const checker = yield* compileJsonSchema(tool.schema).pipe(
    Effect.mapError(
      ({ message }) => new RegistrationError({ tool: tool.name, message: `its schema is refused: ${message}` })
    )
  )
  const spec = { name: tool.name, description: tool.description, parameters: tool.schema }
  const said = tool.contract === undefined && tool.terms === undefined ? {} : { stated: true, ...tool.contract }
  const { deadlineMillis, isolation } = tool
  const time = {
    ...(deadlineMillis === undefined ? {} : { deadlineMillis }),
    ...(isolation === undefined ? {} : { isolation })
  }
  return yield* registered(spec, cautious({ ...time, ...said, functions: functionsOf(tool.terms ?? {}) }), {
    identity: tool.identity,
    check: checker.check,
    run: (args) =>
      Effect.flatMap(
        Effect.suspend(() => asEffect(tool.run(args.effective))),
        toJson
      ),
    terms: tool.terms ?? {},
    binding: { params: (args) => args.effective, result: (json) => json, encode: toJson }
  })
})

/** Registers tools of a run that are declared by JSON Schemas, in order. */
export const fromDynamic = (tools: ReadonlyArray<DynamicTool>): Effect.Effect<Registry, RegistrationError> =>
  Effect.flatMap(
    Effect.forEach(tools, (tool) => dynamic(tool)),
    make
  )

type AnyHandler = (
  params: unknown,
  context: Toolkit.HandlerContext<Tool.Any>
) => Effect.Effect<unknown, unknown, ToolContext>

const registerEffectTool = Effect.fnUntraced(function* (
  tool: Tool.Any,
  handler: AnyHandler,
  context: Context.Context<never>
): Effect.fn.Return<RegisteredTool, RegistrationError> {
  yield* checkName(tool.name)
  if (!Tool.isUserDefined(tool) || Tool.isDynamic(tool)) {
    return yield* refuse(tool.name, "it has no Effect Schema: declare it with Registry.dynamic")
  }
  const faults = faultsOf(statementOf(tool))
  if (faults.length > 0) return yield* refuse(tool.name, faults.join("; "))
  const contract = contractOf(tool)
  const compiled = yield* Effect.try({
    try: () => compileTool(tool),
    catch: (cause) =>
      new RegistrationError({ tool: tool.name, message: `its schema cannot be used: ${reasonOf(cause)}` })
  })
  const { checker } = compiled
  // The services of registration time, overridden by those of the call (its clock, above all).
  const needs = context.mapUnsafe.size > 0
  const provided = <A, E>(handled: Effect.Effect<A, E, ToolContext>): Effect.Effect<A, E, ToolContext> =>
    needs ? Effect.updateContext(handled, (own: Context.Context<ToolContext>) => Context.merge(context, own)) : handled
  const encode = (value: unknown): Effect.Effect<Json> => {
    const encoded = compiled.encode(value)
    return encoded._tag === "Success"
      ? toJson(encoded.success)
      : Effect.die(new BadResult("the result does not fit its schema", value))
  }
  const run = (args: ValidatedArguments): Effect.Effect<Json, ToolError, ToolContext> => {
    if (!isSealed(args)) return Effect.die(new Error(`arguments of ${tool.name} were not checked`))
    return Effect.matchEffect(provided(Effect.suspend(() => asEffect(handler(checker.decode(args), noPreliminary)))), {
      onFailure: (error) => Effect.fail(toolErrorOf(error, contract)),
      onSuccess: encode
    })
  }
  const spec = { name: tool.name, description: tool.description ?? "", parameters: compiled.parameters }
  return yield* registered(spec, contract, {
    check: checker.check,
    run,
    terms: Context.get(tool.annotations, Stated) ?? {},
    binding: { params: checker.decode, result: compiled.decode, encode }
  })
})

const compileTool = (tool: Pick<Tool.Any, "parametersSchema" | "successSchema">) => {
  const success = Schema.toCodecJson(tool.successSchema as Schema.Codec<unknown, unknown>)
  return {
    parameters: parametersOf(tool.parametersSchema),
    checker: compileEffectSchema(tool.parametersSchema),
    // A field that was not promised is a promise broken, and must not reach a model by being left over.
    encode: Schema.encodeUnknownResult(success, { errors: "first", onExcessProperty: "error" }),
    decode: Schema.decodeUnknownSync(success)
  }
}

const noPreliminary: Toolkit.HandlerContext<Tool.Any> = { preliminary: () => Effect.void }

/** A failure of the tool's own type says nothing about the outside world, so its contract has to. */
const toolErrorOf = (error: unknown, contract: Contract): ToolError =>
  error instanceof ToolError
    ? error
    : new ToolError({
        kind: "execution_failed",
        message: reasonOf(error),
        effect: leavesNothing(contract) ? "none" : "unknown"
      })

const reasonOf = (cause: unknown): string => {
  const message = typeof cause === "string" ? cause : (cause as { readonly message?: unknown } | undefined)?.message
  return typeof message === "string" && message !== "" ? message.slice(0, 500) : "no reason given"
}

interface Parts extends Pick<RegisteredTool, "check" | "run"> {
  // biome-ignore lint/suspicious/noExplicitAny: the parameters are those of the tool the terms were declared for
  readonly terms: Terms<any, any>
  readonly binding: Binding
  readonly identity?: JsonObject | undefined
}

/** JSON without what is not said, so that a term nobody states does not change the hash of those who do not. */
const plainOf = (contract: Contract): JsonObject => JSON.parse(JSON.stringify(contract)) as JsonObject

const registered = (
  spec: ToolSpec,
  contract: Contract,
  parts: Parts
): Effect.Effect<RegisteredTool, RegistrationError> =>
  Effect.suspend(() => {
    const { binding, check, identity, run, terms } = parts
    const { keyParameter } = contract
    const hashed = { contract: plainOf(contract), ...(identity === undefined ? {} : { identity }) }
    if (keyParameter === undefined) {
      return Effect.succeed(finish(spec, contract, hashed, { check, run, terms: bind(terms, binding) }))
    }
    if (!takesKey(spec.parameters, keyParameter)) {
      return refuse(spec.name, `its key parameter "${keyParameter}" is not one of its parameters, or not a string`)
    }
    const key = keyed(spec.parameters, check, keyParameter)
    const bound = bind(terms, { ...binding, params: (args) => binding.params(key.complete(args)) })
    const shown = { ...spec, parameters: key.parameters }
    const made = { check: key.check, run: (args: ValidatedArguments) => key.withKey(args, run), terms: bound }
    return Effect.succeed(finish(shown, contract, hashed, made))
  })

const finish = (
  spec: ToolSpec,
  contract: Contract,
  hashed: JsonObject,
  parts: Pick<RegisteredTool, "check" | "run" | "terms">
): RegisteredTool => {
  const hash = sha256(canonical({ spec: { ...spec }, ...hashed }))
  return Object.freeze({
    name: spec.name,
    spec,
    contract,
    terms: parts.terms,
    hash,
    check: parts.check,
    run: parts.run
  })
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

const refuse = (tool: string, message: string): Effect.Effect<never, RegistrationError> =>
  Effect.fail(new RegistrationError({ tool, message }))

const checkName = (name: string): Effect.Effect<void, RegistrationError> =>
  /^[A-Za-z0-9_-]{1,64}$/.test(name)
    ? Effect.void
    : refuse(name.slice(0, 80), "a tool name is 1 to 64 letters, digits, underscores or hyphens")

const known = (
  all: ReadonlyArray<string>,
  wanted: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<string>, RegistrationError> => {
  for (const name of wanted) {
    if (all.includes(name)) continue
    const near = nearest(name, all)
    return refuse(
      name,
      near === undefined ? `unknown tool; known tools: ${all.join(", ")}` : `unknown tool; did you mean ${near}?`
    )
  }
  return Effect.succeed(wanted)
}

/** No tools at all. */
export const none: Registry = sealed([], new Map())
