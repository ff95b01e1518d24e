/** The parts of docs/tools.md that no tool says of itself: the workspace, and tools that are files. */

const beginning = `<!-- Made by npm run docs from src/tools/builtin. Do not edit. -->

# Tools

The tools that come with Writ, as \`writ run\` offers them. What a contract is and what its words mean is in
[contracts.md](contracts.md); what arguments are checked against is in [validation.md](validation.md). \`writ tools list\` shows all
of them, \`writ tools show NAME\` one. Your own tools are TypeScript (\`Toolkit\`), [files](#tools-that-are-files), or those of an MCP
server ([mcp.md](mcp.md)).
`

const workspace = `## The workspace

File tools see one directory (\`--workspace\`, the current one by default) and nothing else.

- A path is relative, with \`/\` between names. \`..\`, absolute paths, backslashes, drive letters, NUL, half characters, names over 255
  bytes and characters that look like \`..\` or a slash and are none are refused before anything is looked up. On Windows also what
  Windows takes for another name: trailing dots and spaces, streams, devices, short names.
- **No symbolic link is followed**, at no place of a path, wherever it leads. Each name is opened without following links inside the
  directory that was opened before it, so a link that is put there between two steps gains nothing; what is open at the end is
  compared with what was looked at, and asked where it is.
- Only regular files are opened: no FIFO, device or socket, and none of them can hold a thread.
- **Hard links.** A file with several names that belongs to somebody else than the workspace is refused and not listed. One of the
  same owner is read, under every name: package managers make them, and the system lets nobody link what is not theirs.
- On a file system that takes several spellings for one name (large and small letters, composed and decomposed accents), only the
  exact spelling is read: permissions are compared by spelling, too.
- Reads stop at 1 MiB while reading, whatever size a file claims. What is not UTF-8 is reported with its first wrong byte and with what
  it looks like; a directory is called one.
- Messages never show where on the machine the workspace is.

Nothing writes into the workspace. Artifacts are published by the runtime under \`artifacts/\` of the run, never through a link.
\`test/tools/Escape.test.ts\` tries 93 ways out of the workspace (and two more where the machine lets it make a device or give a file away) and 18 out of the artifacts, one by one, and the former again while links,
pipes and directories are swapped underneath.
`

const files = `## Tools that are files

\`--tools-dir DIR\` takes every \`NAME.tool.json\` of a directory:

\`\`\`json
{
  "name": "count_words",
  "description": "Count the words of a file of the workspace.",
  "parameters": {
    "type": "object",
    "properties": { "path": { "type": "string", "description": "File name, for example notes.md" } },
    "required": ["path"]
  },
  "command": ["python3", "count.py"],
  "cwd": "workspace",
  "timeoutMillis": 5000,
  "contract": { "risk": "read", "touches": [{ "verb": "read", "resource": "workspace:{path}" }] }
}
\`\`\`

| Key | Says |
| --- | --- |
| \`name\` | The name the model calls it by; the NAME of the file where it is left out. |
| \`description\`, \`parameters\` | What the model is told: a sentence, and a JSON Schema (2020-12, or draft-07 by \`$schema\`). Must be there. |
| \`command\` | The program and its fixed arguments, as a list. A program with a slash is looked for beside the file, any other in \`PATH\`. |
| \`module\` | Instead: a module for Node, beside the file. Its default export is called with the arguments and \`{ idempotencyKey }\`. |
| \`env\` | Names of variables the program gets. |
| \`cwd\` | Where it runs: \`tool\` (the directory of the file, the default) or \`workspace\`. |
| \`timeoutMillis\` | Time for one call, where the contract has no \`deadlineMillis\`; \`--tool-timeout\` holds as well. |
| \`output\` | \`json\` (default) or \`text\`: what standard output is. |
| \`outputSchema\` | A JSON Schema that the output has to fit. |
| \`maxOutputBytes\` | Most bytes of output; 1 MiB unless said, 8 MiB at most. |
| \`contract\` | The contract as plain data, in the form that [mcp.md](mcp.md) has for one tool. May lie beside the file instead, as \`NAME.contract.json\`. |

**What a contract does not say is taken for the worst**: external, never repeated, not to be undone, so every call is asked about. A tool
that acts and says so has to say all it owes. Resources and keys are templates over the arguments (\`workspace:{path}\`,
\`invoice:{order.id}\`); an argument that is absent or no text blocks the call. A resource \`workspace:…\` has to lie in the workspace by the rules above, links
included and without two slashes in a row (an absolute path behind a directory), or the call does not begin. What the program opens beyond what it states is its own business: nothing confines it.

The program is started without a shell, in a process group of its own. It reads the arguments as one JSON object from standard input and
writes its result to standard output. It sees \`PATH\`, the variables that its file names (\`env\`), those that \`--tool-env\` grants to all
tools of a run ([pool.md](pool.md#what-tools-see)), and \`WRIT_IDEMPOTENCY_KEY\`: the key of the logical attempt, the same on every repeat. What it has to honour it for is \`"ledger": "external", "retry": "safe"\`.

| It | The model is told |
| --- | --- |
| exits with 0 and a usable output | the result |
| exits with 0 and an output that is empty, too deep, no JSON or not as promised | \`bad_result\` |
| exits with 75 (try again later) | \`unavailable\`, and the runtime may try again by itself |
| exits otherwise, or is ended by a signal | \`execution_failed\`, with the last lines of standard error |
| writes more than it may | \`execution_failed\`; it is ended |
| is not done at its deadline, or the run is stopped | \`timed_out\`, \`cancelled\`; the group is asked to end and ended two seconds later |

What an error says about the world is the contract's \`failure\`; \`none\` for tools that read, else \`unknown\`. What a program leaves
running in its group is ended when it exits.

All problems of all files are reported at once, each with file, place and remedy, and the run does not begin. The programs are started by
the main process, at most 8 at a time, and pass the same gates as every other tool. \`writ tools list --tools-dir DIR\` shows them;
\`writ tools check --tools-dir DIR\` says what is amiss in their contracts. A settings file cannot name the directory: that is said on
the command line or in \`WRIT_TOOLS_DIR\`. Without \`--tools\` all of its tools are offered, besides those by default.

\`writ mcp serve --tools-dir DIR\` offers them as an MCP server, \`writ trace replay RUN --tools-dir DIR\` executes recorded calls of those that
only read once more. In a program:

\`\`\`ts
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Agent, Wiring } from "effect-writ"
import { FileTools } from "effect-writ/files"
import * as Effect from "effect/Effect"

const program = Effect.gen(function* () {
  const files = yield* FileTools.open("tools", { env: { API_KEY: "…" } })
  // What is wrong in the files is in files.problems; those tools are not there.
  return yield* Agent.run({ task: "Count the words of notes.md.", tools: files.registry, settings: { workspace: ".", fixtures: {} } }).pipe(
    Effect.provide(files.layer(Wiring.layer({ model: "model.gguf" })))
  )
}).pipe(Effect.provide(NodeServices.layer))
\`\`\`
`

export const chapters = { beginning: [beginning], end: [workspace, files] }
