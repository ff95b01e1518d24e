/**
 * What a kind of assertion is: a name, the fields a suite gives, and how it decides. Also what surrounds a decision: the
 * project, the engines and tools there are. Kinds that need none of it decide at once.
 */
import type * as Effect from "effect/Effect"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Schema from "effect/Schema"
import type { Json, JsonObject } from "../../tools/JsonText.ts"
import type { RegisteredTool, Registry, ValidatedArguments } from "../../tools/Registry.ts"
import type { ToolOutcome } from "../../tools/ToolCall.ts"
import type { Embedder } from "./Embedder.ts"
import type { JudgeEngine } from "./JudgeEngine.ts"
import { operators } from "./Operator.ts"
import type { Subject } from "./Subject.ts"
import type { Verdict } from "./Verdict.ts"

/** Tools that an assertion may call, and how. */
export interface ToolDoor {
  readonly registry: Registry
  readonly run: (tool: RegisteredTool, args: ValidatedArguments) => Effect.Effect<ToolOutcome>
}

/** Whatever is absent defers the kinds that need it. */
export interface Around {
  /** The project: scripts lie in it and run in it. */
  readonly root: string
  /** Where transcripts of judges go. */
  readonly judges: string
  /** The environment that `pass_env` may pass on. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly spawner?: ChildProcessSpawner["Service"]
  /** Milliseconds a script may take: 30 000 unless given. */
  readonly scriptMillis?: number
  readonly judge?: JudgeEngine
  readonly embedder?: Embedder
  readonly tools?: ToolDoor
}

/** Which assertion this is: for names of files it leaves. */
export interface Place {
  /** The case's name, or `case-N` by its place. */
  readonly case: string
  /** The case's place in the suite, from 0: two may have one name. */
  readonly index: number
  /** From 0, within its case. */
  readonly ordinal: number
}

export type Decide<A> = (
  assertion: A,
  subject: Subject,
  around: Around,
  place: Place
) => Verdict | Effect.Effect<Verdict>

export interface Kind<Type extends string, A extends { readonly type: Type }> {
  readonly type: Type
  /** Decodes the whole assertion, `type` included. */
  readonly schema: Schema.Decoder<A>
  /** The names of its fields, for messages. */
  readonly fields: ReadonlyArray<string>
  readonly decide: Decide<A>
}

/** A kind of these fields. */
export const kind = <const Type extends string, const Fields extends Schema.Struct.Fields>(
  type: Type,
  fields: Fields & { readonly [K in keyof Fields]: { readonly DecodingServices: never } },
  decide: Decide<{ readonly type: Type } & Schema.Struct.Type<Fields>>
): Kind<Type, { readonly type: Type } & Schema.Struct.Type<Fields>> => ({
  type,
  schema: Schema.Struct({ type: Schema.Literal(type), ...(fields as Fields) }) as unknown as Schema.Decoder<
    { readonly type: Type } & Schema.Struct.Type<Fields>
  >,
  fields: Object.keys(fields),
  decide
})

/** Fields that several kinds have. */
export const Tool = Schema.NonEmptyString
export const WithArgs = Schema.Record(Schema.String, Schema.Json)
export const Op = Schema.Literals(operators)
export const Value = Schema.Json
export const Count = Schema.Natural

/** What `with_args` decodes to. */
export type Args = Readonly<Record<string, Schema.Json>>

export const asJson = (value: Schema.Json): Json => value as Json
export const asObject = (args: Args): JsonObject => args as JsonObject
