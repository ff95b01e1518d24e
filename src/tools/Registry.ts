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
import { type Contract, contractOf } from "./Contract.ts"
import { compile as compileEffectSchema } from "./EffectSchema.ts"
import { asEffect, BadResult, toJson } from "./JsonResult.ts"
import { compile as compileJsonSchema } from "./JsonSchema.ts"
import { canonical, type Json, type JsonObject } from "./JsonText.ts"
import { nearest } from "./Nearest.ts"
import { parametersOf } from "./Parameters.ts"
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
  /** SHA-256 (hex) of the canonical JSON of spec and contract. */
  readonly hash: string
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
  return Effect.succeed(
    Object.freeze({
      tools: Object.freeze([...tools]),
      specs: Object.freeze(tools.map((tool) => tool.spec)),
      get: (name: string) => byName.get(name),
      hash: sha256(tools.map((tool) => tool.hash).join("\n"))
    })
  )
}

/** A tool whose schema arrives as JSON: from a file, from a server, from another program. */
export interface DynamicTool {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments object: 2020-12, or draft-07 by `$schema`. Shown to the model as it is. */
  readonly schema: JsonObject
  /** What is not said is assumed to be dangerous. */
  readonly contract?: Partial<Contract>
  /** Gets the effective arguments. What it returns must be JSON. */
  readonly run: (args: JsonObject) => Effect.Effect<unknown, ToolError, ToolContext>
}

/** Registers a tool declared by a JSON Schema; ajv is loaded by the first one. */
export const dynamic = Effect.fnUntraced(function* (
  tool: DynamicTool
): Effect.fn.Return<RegisteredTool, RegistrationError> {
  yield* checkName(tool.name)
  const checker = yield* compileJsonSchema(tool.schema).pipe(
    Effect.mapError(
      ({ message }) => new RegistrationError({ tool: tool.name, message: `its schema is refused: ${message}` })
    )
  )
  const spec = { name: tool.name, description: tool.description, parameters: tool.schema }
  return registered(spec, cautious(tool.contract ?? {}), {
    check: checker.check,
    run: (args) =>
      Effect.flatMap(
        Effect.suspend(() => asEffect(tool.run(args.effective))),
        toJson
      )
  })
})

/** Registers tools of a run that are declared by JSON Schemas, in order. */
export const fromDynamic = (tools: ReadonlyArray<DynamicTool>): Effect.Effect<Registry, RegistrationError> =>
  Effect.flatMap(
    Effect.forEach(tools, (tool) => dynamic(tool)),
    make
  )

const cautious = (given: Partial<Contract>): Contract => {
  return {
    risk: given.risk ?? "external",
    ledger: given.ledger ?? "none",
    deadlineMillis: given.deadlineMillis,
    terminable: given.terminable ?? true,
    polling: given.polling ?? false,
    asksUser: given.asksUser ?? false
  }
}

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
  const contract = contractOf(tool)
  const compiled = yield* Effect.try({
    try: () => ({
      parameters: parametersOf(tool.parametersSchema),
      checker: compileEffectSchema(tool.parametersSchema),
      encode: Schema.encodeUnknownResult(Schema.toCodecJson(tool.successSchema as Schema.Codec<unknown, unknown>))
    }),
    catch: (cause) =>
      new RegistrationError({ tool: tool.name, message: `its schema cannot be used: ${reasonOf(cause)}` })
  })
  const needs = context.mapUnsafe.size > 0
  const run = (args: ValidatedArguments): Effect.Effect<Json, ToolError, ToolContext> => {
    if (!isSealed(args)) return Effect.die(new Error(`arguments of ${tool.name} were not checked`))
    const handled = Effect.suspend(() => asEffect(handler(compiled.checker.decode(args), noPreliminary)))
    // The services of registration time, overridden by those of the call (its clock, above all).
    const provided = needs
      ? Effect.updateContext(handled, (own: Context.Context<ToolContext>) => Context.merge(context, own))
      : handled
    return Effect.matchEffect(provided, {
      onFailure: (error) => Effect.fail(toolErrorOf(error, contract)),
      onSuccess: (value) => {
        const encoded = compiled.encode(value)
        return encoded._tag === "Success"
          ? toJson(encoded.success)
          : Effect.die(new BadResult("the result does not fit its schema"))
      }
    })
  }
  const spec = { name: tool.name, description: tool.description ?? "", parameters: compiled.parameters }
  return registered(spec, contract, { check: compiled.checker.check, run })
})

const noPreliminary: Toolkit.HandlerContext<Tool.Any> = { preliminary: () => Effect.void }

/** A failure of the tool's own type says nothing about the outside world, so its contract has to. */
const toolErrorOf = (error: unknown, contract: Contract): ToolError =>
  error instanceof ToolError
    ? error
    : new ToolError({
        kind: "execution_failed",
        message: reasonOf(error),
        effect: contract.risk === "read" ? "none" : "unknown"
      })

const reasonOf = (cause: unknown): string => {
  const message = typeof cause === "string" ? cause : (cause as { readonly message?: unknown } | undefined)?.message
  return typeof message === "string" && message !== "" ? message.slice(0, 500) : "no reason given"
}

const registered = (
  spec: ToolSpec,
  contract: Contract,
  parts: Pick<RegisteredTool, "check" | "run">
): RegisteredTool => {
  const { deadlineMillis, ...rest } = contract
  const plain = { ...rest, ...(deadlineMillis === undefined ? {} : { deadlineMillis }) }
  const hash = sha256(canonical({ spec: { ...spec }, contract: plain }))
  return Object.freeze({ name: spec.name, spec, contract, hash, ...parts })
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
