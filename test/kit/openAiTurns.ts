/** One turn on a server of a test's, and what became of it. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { openAiChat as codec } from "../../src/engine/codecs/OpenAiChat.ts"
import type { GenerationEvent, TurnRequest } from "../../src/engine/Generation.ts"
import type { Patience } from "../../src/engine/OpenAiHttp.ts"
import { make, type OpenAiOptions } from "../../src/engine/OpenAiModel.ts"
import { type Answering, type Asked, fake, hasty, models, transport } from "./openAiServer.ts"

export const request: TurnRequest = {
  maxTokens: 64,
  sampling: { temperature: 0, topK: 40, topP: 0.95, seed: 7 },
  stops: []
}

/** A model over Node's connections, which end with the scope. `sent`: each request, whether or not it gets anywhere. */
export const open = (options: OpenAiOptions, sent: (url: string) => void = () => {}) =>
  Effect.flatMap(Layer.build(transport), (services) =>
    Effect.provideService(
      make({ ...options, patience: { ...hasty, ...options.patience } }),
      HttpClient.HttpClient,
      HttpClient.tapRequest(Context.get(services, HttpClient.HttpClient), ({ url }) => Effect.sync(() => sent(url)))
    )
  )

export const spoken = (events: ReadonlyArray<GenerationEvent>): string =>
  events.map((event) => (event._tag === "Piece" ? event.text : "")).join("")

/** A session with a user's message, on a server whose chat answers like this. */
export const chatting = (answering: Answering, patience: Partial<Patience> = {}) =>
  Effect.gen(function* () {
    const server = yield* fake({ "/models": models("m"), "/chat/completions": answering })
    let sent = 0
    const model = yield* open({ url: server.url, patience }, (url) => {
      if (url.endsWith("/chat/completions")) sent += 1
    })
    const session = yield* model.session
    yield* session.commit([...codec.system("S", { tools: [] }), ...codec.user("U")])
    const turns = (): ReadonlyArray<Asked> => server.asked.filter(({ path }) => path === "/chat/completions")
    return { server, session, turns, sent: () => sent, turn: session.turn(codec.opening({ tools: [] }), request) }
  })

/** One turn to its end: what was said, how it ended or failed, how often it was asked for. */
export const answered = (answering: Answering, patience: Partial<Patience> = {}) =>
  Effect.gen(function* () {
    const { sent, turn } = yield* chatting(answering, patience)
    const pieces: Array<GenerationEvent> = []
    const exit = yield* Effect.result(Stream.runForEach(turn, (event) => Effect.sync(() => pieces.push(event))))
    const end = pieces.find((event) => event._tag === "End")
    return {
      text: spoken(pieces),
      end: end?._tag === "End" ? end : undefined,
      error: exit._tag === "Failure" ? exit.failure : undefined,
      // A client that gives up early may have done so before the server knew of it.
      asked: sent()
    }
  })
