/**
 * The tools of a directory: every `NAME.tool.json` in it, with the contract inside or beside it (`NAME.contract.json`). All that is
 * wrong in all files is found at once. What a contract does not say is taken for the worst.
 */
import * as fs from "node:fs"
import { delimiter, extname, isAbsolute, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import * as Effect from "effect/Effect"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Result from "effect/Result"
import type { Contract } from "../Contract.ts"
import { type Json, type JsonObject, parse } from "../JsonText.ts"
import { statementOf } from "../mcp/McpContract.ts"
import * as McpContractFile from "../mcp/McpContractFile.ts"
import { compile as compileOutput, type OutputCheck } from "../mcp/McpOutput.ts"
import { dynamic, type RegisteredTool } from "../Registry.ts"
import type { Terms } from "../Terms.ts"
import type { EffectClaim } from "../ToolCall.ts"
import { ToolContext } from "../ToolContext.ts"
import { leavesBy } from "../Workspace.ts"
import { type FileProblem, read as readForm, type ToolDeclaration } from "./ToolFileForm.ts"
import { run, type ToolProgram } from "./ToolProcess.ts"

export interface FileTool {
  /** The path of its file. */
  readonly file: string
  /** It works in the workspace of the run, or says that it touches something there. */
  readonly inWorkspace: boolean
  readonly registered: RegisteredTool
}

export interface ToolFiles {
  /** By name of the file. Those without a problem. */
  readonly tools: ReadonlyArray<FileTool>
  readonly problems: ReadonlyArray<FileProblem>
}

/** Bytes one file may have, and files that are looked at. */
const maxBytes = 256 * 1024
const maxTools = 256

const toolEnd = ".tool.json"
const contractEnd = ".contract.json"

/** Paths of program and module are relative to the directory of the file. */
const isExecutable = (path: string): boolean => {
  try {
    fs.accessSync(path, fs.constants.X_OK)
    return fs.statSync(path).isFile()
  } catch {
    return false
  }
}

const isWindows = process.platform === "win32"
const endings = isWindows ? ["", ".exe", ".com"] : [""]

const found = (command: string, directory: string): string | undefined => {
  const named = command.includes("/") || isAbsolute(command)
  const host = process.env
  const directories = named ? [directory] : (host["PATH"] ?? "").split(delimiter).filter((one) => one !== "")
  for (const one of directories) {
    for (const ending of endings) {
      const path = resolve(one, `${command}${ending}`)
      if (isExecutable(path)) return path
    }
  }
  return undefined
}

/** The thing that runs a module, as it lies beside this file in every form of the package. */
const moduleProcess = (): string =>
  fileURLToPath(new URL(`../files/moduleProcess${extname(import.meta.url)}`, import.meta.url))

type Start = Pick<ToolProgram, "command" | "args">

const startOf = ({ output, start }: ToolDeclaration, directory: string): Start | Omit<FileProblem, "file"> => {
  if (start._tag === "Module") {
    const path = resolve(directory, start.file)
    const isFile = fs.statSync(path, { throwIfNoEntry: false })?.isFile() === true
    return isFile
      ? { command: process.execPath, args: [moduleProcess(), path, output] }
      : { place: "module", message: `there is no file ${JSON.stringify(start.file)}; it is looked for beside this one` }
  }
  const command = found(start.command, directory)
  if (command !== undefined) return { command, args: start.args }
  const where = start.command.includes("/") ? "it is looked for beside this file" : "it is looked for in PATH"
  const shell = /[\s|&;<>$]/.test(start.command) ? "; no shell is used: write each argument as a text of its own" : ""
  return {
    place: "command[0]",
    message: `there is no program ${JSON.stringify(start.command)} that can be run; ${where}${shell}`
  }
}

interface Said {
  readonly contract: Partial<Contract> | undefined
  readonly terms: Terms<JsonObject, Json> | undefined
  readonly failure: EffectClaim
  /** What it touches, as it is written: templates over the arguments. */
  readonly resources: ReadonlyArray<string>
}

/** What the contract says, in the form that contract files of MCP servers have for one tool. */
const contractOf = (
  { description, name, parameters }: ToolDeclaration,
  value: Json | undefined
): Said | ReadonlyArray<Omit<FileProblem, "file">> => {
  const server = "tools"
  const shortened = (problems: ReadonlyArray<McpContractFile.FormProblem>) =>
    problems.map(({ message, path }) => ({ place: McpContractFile.placeOf(path.slice(4)), message }))
  const whole = value === undefined ? {} : { [name]: value }
  const read = McpContractFile.read({ version: 1, servers: { [server]: { tools: whole } } })
  if (Result.isFailure(read)) return shortened(read.failure)
  const descriptor = { name, description, inputSchema: parameters, hints: {}, hash: "" }
  const { problems, statement } = statementOf(server, descriptor, read.success.servers[server])
  const resources = read.success.servers[server]?.tools?.[name]?.touches?.map(({ resource }) => resource) ?? []
  return problems.length > 0 ? shortened(problems) : { ...statement, terms: walled(statement.terms), resources }
}

/** An absolute path behind a directory: to us one inside it, and to most libraries that join paths itself alone. */
const doubled = (path: string): string | undefined =>
  /[^/]\/\//.test(path) ? "there are two slashes in a row in it: an argument may be an absolute path" : undefined

/**
 * What a tool says it touches of the workspace has to be inside it: the program opens it by itself, past our walls. Holds before
 * every call, as a precondition.
 */
const walled = (terms: Terms<JsonObject, Json> | undefined): Terms<JsonObject, Json> | undefined => {
  const touches = terms?.touches
  if (touches === undefined) return terms
  const pre = (args: JsonObject) =>
    Effect.map(ToolContext, ({ settings }) =>
      touches(args).flatMap(({ resource }) => {
        const path = /^workspace:(.*)$/s.exec(resource)?.[1]
        if (path === undefined) return []
        // A star may be the contract's or the model's: a name like any other, on Windows in the form a name may have there.
        const reason = doubled(path) ?? leavesBy(settings.workspace, isWindows ? path.replaceAll("*", "-") : path)
        return reason === undefined
          ? []
          : [{ reason: `${JSON.stringify(path.slice(0, 200))} is not in the workspace: ${reason}` }]
      })
    )
  return { ...terms, pre }
}

const parsed = (path: string, shown: string): Json | FileProblem => {
  const problem = (message: string, place = ""): FileProblem => ({ file: shown, place, message })
  let text: string
  let descriptor: number | undefined
  try {
    // A pipe with this name would otherwise be waited for, by everybody.
    descriptor = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
    const stat = fs.fstatSync(descriptor)
    if (!stat.isFile()) return problem("it is no regular file")
    if (stat.size > maxBytes) return problem(`it has ${stat.size} bytes, at most ${maxBytes} are read`)
    text = fs.readFileSync(descriptor, "utf8")
  } catch (cause) {
    return problem(`it cannot be read: ${String((cause as { readonly code?: unknown }).code)}`)
  } finally {
    if (descriptor !== undefined) fs.closeSync(descriptor)
  }
  const value = parse(text.replace(/^\ufeff/, ""), { maxDepth: 100 })
  if (Result.isSuccess(value)) return value.success
  const { position, reason } = value.failure
  return problem(reason, `line ${text.slice(0, position).split("\n").length}`)
}

const isProblem = (value: unknown): value is FileProblem =>
  typeof value === "object" && value !== null && "file" in value && "place" in value && "message" in value

/** What a file and its contract say, with nothing wrong in either. */
interface Whole {
  readonly declaration: ToolDeclaration
  readonly start: Start
  readonly said: Said
}

const wholeOf = (directory: string, shown: string, base: string): Whole | ReadonlyArray<FileProblem> => {
  const file = join(shown, `${base}${toolEnd}`)
  const value = parsed(join(directory, `${base}${toolEnd}`), file)
  if (isProblem(value)) return [value]
  const declaration = readForm(file, base, value)
  if (!("start" in declaration)) return declaration
  const problems: Array<FileProblem> = []
  const start = startOf(declaration, directory)
  if ("message" in start) problems.push({ file, ...start })
  const beside = join(directory, `${base}${contractEnd}`)
  const contractFile = join(shown, `${base}${contractEnd}`)
  const isBeside = fs.existsSync(beside)
  if (isBeside && declaration.contract !== undefined) {
    problems.push({
      file,
      place: "contract",
      message: `there is ${base}${contractEnd} beside it as well: keep one of the two`
    })
  }
  const contract = isBeside ? parsed(beside, contractFile) : declaration.contract
  if (isProblem(contract)) return [...problems, contract]
  const said = contractOf(declaration, contract)
  if (!("failure" in said)) {
    const at = (place: string) => (isBeside ? place : place === "" ? "contract" : `contract.${place}`)
    return [
      ...problems,
      ...said.map(({ message, place }) => ({ file: isBeside ? contractFile : file, place: at(place), message }))
    ]
  }
  return "message" in start || problems.length > 0 ? problems : { declaration, start, said }
}

const registered = Effect.fnUntraced(function* (
  { declaration, said, start }: Whole,
  check: OutputCheck | undefined,
  directory: string,
  { granted, spawner }: Host
) {
  const { cwd, description, env, maxOutputBytes, name, output, parameters, timeoutMillis } = declaration
  const program: ToolProgram = {
    ...start,
    directory: cwd === "tool" ? directory : undefined,
    env,
    granted,
    output,
    check,
    maxOutputBytes,
    failure: said.failure,
    unfinished: said.contract?.risk === "read" ? "none" : "unknown"
  }
  return yield* dynamic({
    name,
    description,
    schema: parameters,
    ...(said.contract === undefined ? {} : { contract: said.contract }),
    ...(said.terms === undefined ? {} : { terms: said.terms }),
    ...(timeoutMillis === undefined ? {} : { deadlineMillis: timeoutMillis }),
    isolation: "process",
    // As it is written: the same files elsewhere are the same tools.
    identity: { start: { ...declaration.start }, env, cwd, output },
    run: (args) => Effect.provideService(run(program, args), ChildProcessSpawner, spawner)
  })
})

/** What the programs of a directory are started with. */
interface Host {
  readonly spawner: ChildProcessSpawner["Service"]
  readonly granted: Readonly<Record<string, string>>
}

/** Where a refusal of the registry belongs. */
const placeOf = (message: string): string =>
  /^its schema is refused/.test(message)
    ? "parameters"
    : /key parameter/.test(message)
      ? "contract.keyParameter"
      : "contract"

const toolOf = Effect.fnUntraced(function* (
  directory: string,
  shown: string,
  base: string,
  host: Host
): Effect.fn.Return<FileTool | ReadonlyArray<FileProblem>> {
  const file = join(shown, `${base}${toolEnd}`)
  const whole = wholeOf(directory, shown, base)
  if (!("said" in whole)) return whole
  const { outputSchema } = whole.declaration
  const check = yield* Effect.result(
    outputSchema === undefined ? Effect.succeed(undefined) : compileOutput(outputSchema)
  )
  if (Result.isFailure(check)) return [{ file, place: "outputSchema", message: check.failure }]
  const made = yield* Effect.result(registered(whole, check.success, directory, host))
  return Result.isSuccess(made)
    ? { file, inWorkspace: isInWorkspace(whole), registered: made.success }
    : [{ file, place: placeOf(made.failure.message), message: made.failure.message }]
})

const namesIn = (directory: string): ReadonlyArray<string> | string => {
  try {
    return fs.readdirSync(directory).sort()
  } catch (cause) {
    const { code } = cause as { readonly code?: unknown }
    if (code === "ENOENT") return "there is no such directory"
    return code === "ENOTDIR" ? "it is not a directory" : `it cannot be read: ${String(code)}`
  }
}

const withEnd = (names: ReadonlyArray<string>, end: string): ReadonlyArray<string> =>
  names.filter((name) => name.endsWith(end) && !name.startsWith(".")).map((name) => name.slice(0, -end.length))

/** Tools of one name are nobody's: a call could mean either. */
const twice = (tools: ReadonlyArray<FileTool>): ReadonlyArray<FileProblem> =>
  tools.flatMap(({ file, registered: { name } }) => {
    const other = tools.find((one) => one.registered.name === name && one.file !== file)
    return other === undefined ? [] : [{ file, place: "name", message: `${other.file} has a tool ${name} as well` }]
  })

/** Of a template only the beginning is known before a call. */
const isInWorkspace = ({ declaration, said }: Whole): boolean =>
  declaration.cwd === "workspace" || said.resources.some((resource) => resource.startsWith("workspace:"))

/**
 * Reads the directory. The tools start their programs with the spawner of whoever loads them. `granted`: variables that all of
 * them see, besides those they name.
 */
export const load = Effect.fnUntraced(function* (
  shown: string,
  granted: Readonly<Record<string, string>> = {}
): Effect.fn.Return<ToolFiles, never, ChildProcessSpawner> {
  const spawner = yield* ChildProcessSpawner
  const directory = resolve(shown)
  const names = namesIn(directory)
  const about = (message: string): ToolFiles => ({ tools: [], problems: [{ file: shown, place: "", message }] })
  if (typeof names === "string") return about(names)
  const bases = withEnd(names, toolEnd)
  if (bases.length === 0) return about(`there is no tool in it: a tool is a file NAME${toolEnd}`)
  if (bases.length > maxTools) return about(`there are ${bases.length} tools in it, at most ${maxTools} are taken`)
  const orphans = withEnd(names, contractEnd).filter((base) => !bases.includes(base))
  const made = yield* Effect.forEach(bases, (base) => toolOf(directory, shown, base, { spawner, granted }))
  const tools = made.filter((one) => "registered" in one)
  const double = twice(tools)
  return {
    tools: tools.filter(({ file }) => !double.some((problem) => problem.file === file)),
    problems: [
      ...made.flatMap((one) => ("registered" in one ? [] : one)),
      ...double,
      ...orphans.map((base) => ({
        file: join(shown, `${base}${contractEnd}`),
        place: "",
        message: `there is no ${base}${toolEnd} beside it`
      }))
    ]
  }
})
