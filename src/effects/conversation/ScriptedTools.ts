/**
 * The tools of a script: each declared tool answers its calls from a queue of its own. Checks, deadlines and answers are those
 * of the loop; only what the tool does is said by the script. Nothing outside is touched, so all of them read.
 */
import * as Effect from "effect/Effect"
import { canonical, type JsonObject } from "../../tools/JsonText.ts"
import * as Registry from "../../tools/Registry.ts"
import { ToolError } from "../../tools/ToolError.ts"
import type { Stop } from "../State.ts"
import type { Meta, ToolDefinition } from "./Conversation.ts"
import { ConversationError } from "./ConversationError.ts"
import type { Fixture, ToolReply } from "./Fixture.ts"

export interface ScriptFault {
  readonly kind: "over" | "unexpected"
  readonly message: string
}

export class ScriptedTools {
  readonly #queues: Readonly<Record<string, ReadonlyArray<ToolReply>>>
  readonly #taken: Map<string, number>
  /** What the script got wrong. It ends the run: whatever comes after it would mean nothing. */
  fault: ScriptFault | undefined
  /** Ends the run that is under way. */
  stop: (reason: Stop) => void = () => {}

  /** `before`: how many calls of each tool were answered already. */
  constructor(queues: NonNullable<Fixture["tools"]>, before: ReadonlyMap<string, number>) {
    this.#queues = queues
    this.#taken = new Map(before)
  }

  /** `tools.add: 1 result not used`, for each tool that has some left. */
  readonly left = (): ReadonlyArray<string> =>
    Object.entries(this.#queues).flatMap(([name, replies]) => {
      const left = replies.length - (this.#taken.get(name) ?? 0)
      return left > 0 ? [`tools.${name}: ${left} result${left === 1 ? "" : "s"} not used`] : []
    })

  /** The declared tools of a conversation. Its schemas are compiled here. */
  readonly registry = (
    { tools = [] }: Pick<Meta, "tools">,
    path: string
  ): Effect.Effect<Registry.Registry, ConversationError> =>
    Effect.mapError(
      Registry.fromDynamic(tools.map((definition) => this.#tool(definition))),
      ({ message, tool }) => new ConversationError({ path, place: `meta.tools, ${tool}`, reason: message })
    )

  #tool({ description, input_schema, name }: ToolDefinition): Registry.DynamicTool {
    return {
      name,
      description,
      schema: input_schema,
      contract: { risk: "read" },
      run: (args) => Effect.suspend(() => this.#answer(name, args))
    }
  }

  #answer(name: string, args: JsonObject): Effect.Effect<string, ToolError> {
    const index = this.#taken.get(name) ?? 0
    const replies = this.#queues[name]
    const reply = replies?.[index]
    if (reply === undefined) {
      const there = replies === undefined ? "the script does not name it" : `the script has ${replies.length}`
      return this.#fail({
        kind: "over",
        message: `tools.${name}: call ${index}, counting from 0, has no result: ${there}`
      })
    }
    const { expect_input: expected } = reply
    if (expected !== undefined && canonical(expected) !== canonical(args)) {
      const message = `tools.${name}: call ${index}, counting from 0, was expected with ${canonical(expected)} and came with ${canonical(args)}`
      return this.#fail({ kind: "unexpected", message })
    }
    this.#taken.set(name, index + 1)
    const done = said(reply)
    return reply.delay_ms === undefined ? done : Effect.andThen(Effect.sleep(reply.delay_ms), done)
  }

  #fail(fault: ScriptFault): Effect.Effect<never> {
    return Effect.suspend(() => {
      this.fault ??= fault
      this.stop({ _tag: "Failed", class: "conversation", message: fault.message })
      return Effect.never
    })
  }
}

const said = ({ content = "", hang, is_error, throw: broken }: ToolReply): Effect.Effect<string, ToolError> => {
  if (hang === true) return Effect.never
  if (broken !== undefined) return Effect.die(new Error(broken))
  return is_error === true
    ? Effect.fail(new ToolError({ kind: "execution_failed", message: content }))
    : Effect.succeed(content)
}
