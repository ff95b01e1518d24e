/** MCP servers as they are named on the command line: what is said about them, read and put together. Reaches none of them. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as CommandLine from "effect/process/CommandLine"
import * as Result from "effect/Result"
import { type McpServer, variable } from "../actors/McpServer.ts"
import { serverName } from "../tools/mcp/McpNames.ts"

export const serverForm = "[NAME=]COMMAND|URL"
export const variableForm = "SERVER:VARIABLE"
export const headerForm = "SERVER:HEADER=VARIABLE"

interface Said {
  readonly name: string | undefined
  readonly transport: McpServer["transport"]
}

/** Words as a shell would read them; nothing that only a shell can do. */
const wordsOf = (text: string): Result.Result<ReadonlyArray<string>, string> =>
  Result.match(CommandLine.template(Object.assign([text], { raw: [text] })), {
    onFailure: ({ message }) => Result.fail(`"${text}": ${message}`),
    onSuccess: (words) => Result.succeed(words.map(String))
  })

const transportOf = (text: string): Result.Result<McpServer["transport"], string> => {
  if (/^[a-z]+:\/\//i.test(text)) {
    const url = URL.parse(text)
    if (url === null || !/^https?:$/.test(url.protocol)) return Result.fail(`"${text}" is no http address`)
    if (url.username !== "" || url.password !== "") {
      return Result.fail("an address holds no user name; name a header with --mcp-header")
    }
    return Result.succeed({ _tag: "Http", url: text })
  }
  return Result.flatMap(wordsOf(text), ([command, ...args]) =>
    command === undefined ? Result.fail("the command is empty") : Result.succeed({ _tag: "Stdio", command, args })
  )
}

/** `files=npx -y some-server .`, or without a name, or with an address instead of a command. */
export const parseServer = (text: string): Result.Result<Said, string> => {
  const [, name, rest] = /^([A-Za-z0-9_-]+)=(.*)$/s.exec(text) ?? []
  if (name !== undefined && !serverName.test(name)) {
    return Result.fail(`"${name}" is not a server's name: 1 to 24 letters, digits, - and single _ between them`)
  }
  return Result.map(transportOf((rest ?? text).trim()), (transport) => ({ name, transport }))
}

interface Grant {
  readonly server: string
  readonly variable: string
}

interface HeaderGrant extends Grant {
  readonly header: string
}

const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/

/** A name by itself. */
export const parseVariableName = (text: string): Result.Result<string, string> =>
  variableName.test(text) ? Result.succeed(text) : Result.fail(`"${text}" is not the name of a variable`)

/** `files:API_KEY`. */
export const parseVariable = (text: string): Result.Result<Grant, string> => {
  const [, server, variable] = /^([^:]+):(.+)$/.exec(text) ?? []
  return server !== undefined && variable !== undefined && variableName.test(variable)
    ? Result.succeed({ server, variable })
    : Result.fail(`"${text}" is not of the form ${variableForm}`)
}

/** `files:Authorization=FILES_TOKEN`: the variable holds the whole value. */
export const parseHeader = (text: string): Result.Result<HeaderGrant, string> => {
  const [, server, header, variable] = /^([^:]+):([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(.+)$/.exec(text) ?? []
  return server !== undefined && header !== undefined && variable !== undefined && variableName.test(variable)
    ? Result.succeed({ server, header, variable })
    : Result.fail(`"${text}" is not of the form ${headerForm}`)
}

export interface McpWords {
  readonly mcp: ReadonlyArray<string>
  readonly mcpEnv: ReadonlyArray<string>
  readonly mcpHeader: ReadonlyArray<string>
}

const named = (said: ReadonlyArray<Said>): ReadonlyArray<McpServer> => {
  let unnamed = 0
  return said.map(({ name, transport }) => {
    if (name !== undefined) return { name, transport }
    unnamed++
    return { name: unnamed === 1 ? "mcp" : `mcp${unnamed}`, transport }
  })
}

const valueOf = (flag: string, name: string): Effect.Effect<string, string> =>
  Effect.flatMap(variable(name), (value) =>
    Option.isSome(value) ? Effect.succeed(value.value) : Effect.fail(`${flag}: there is no variable ${name}`)
  )

/** A server with what it was granted of our environment. */
const granted = Effect.fnUntraced(function* (
  server: McpServer,
  variables: ReadonlyArray<Grant>,
  headers: ReadonlyArray<HeaderGrant>
): Effect.fn.Return<McpServer, string> {
  const { name, transport } = server
  const values: Record<string, string> = {}
  if (transport._tag === "Stdio") {
    for (const one of variables) {
      if (one.server === name) values[one.variable] = yield* valueOf("--mcp-env", one.variable)
    }
    return { name, transport: { ...transport, env: values } }
  }
  for (const one of headers) {
    if (one.server === name) values[one.header] = yield* valueOf("--mcp-header", one.variable)
  }
  return { name, transport: { ...transport, headers: values } }
})

/** The servers that are named, or what is wrong with what is said about them. */
export const serversOf = Effect.fnUntraced(function* (
  words: McpWords
): Effect.fn.Return<ReadonlyArray<McpServer>, string> {
  const servers = named(yield* Effect.fromResult(Result.all(words.mcp.map(parseServer))))
  const names = servers.map(({ name }) => name)
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) return yield* Effect.fail(`--mcp: two servers are named ${twice}`)
  const variables = yield* Effect.fromResult(Result.all(words.mcpEnv.map(parseVariable)))
  const headers = yield* Effect.fromResult(Result.all(words.mcpHeader.map(parseHeader)))
  const grants = [
    ...variables.map((grant) => ["--mcp-env", "Stdio", grant] as const),
    ...headers.map((grant) => ["--mcp-header", "Http", grant] as const)
  ]
  for (const [flag, tag, { server }] of grants) {
    const found = servers.find(({ name }) => name === server)
    if (found === undefined) return yield* Effect.fail(`${flag}: no server is named ${server}`)
    if (found.transport._tag !== tag) {
      const what =
        tag === "Stdio" ? "is reached by an address and gets no variables" : "is a command and gets no headers"
      return yield* Effect.fail(`${flag}: ${server} ${what}`)
    }
  }
  return yield* Effect.forEach(servers, (server) => granted(server, variables, headers))
})
