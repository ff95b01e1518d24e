/** What people are told of a tool that comes with the package, beyond what a model is: docs/tools.md is made of it. No part of a tool's hash. */
import type * as Tool from "effect/ai/Tool"
import * as Context from "effect/Context"
import type { JsonObject } from "./JsonText.ts"

export interface AboutTool {
  /** Markdown: what it does, where it ends, how it fails. */
  readonly text: string
  readonly example: JsonObject
  /** The answer depends on the machine: it is not shown. */
  readonly varies?: true
}

const About = Context.Reference<AboutTool | undefined>("effect-writ/tools/About", {
  defaultValue: () => undefined
})

export const about = <T extends Tool.Any>(tool: T, said: AboutTool): T => tool.annotate(About, said) as T

export const aboutOf = (tool: Tool.Any): AboutTool | undefined => Context.get(tool.annotations, About)
