/** Public surface "effect-writ/serve": chat completions over HTTP, backed by the governed loop, for programs of your own. */
export { type ChatServer, defaultLimits, make, type ServeLimits, type ServeOptions } from "./ChatServer.ts"
export { type ListenOptions, layer as layerListener } from "./HttpListener.ts"
export { parse as parseTokens, type Tokens } from "./Tokens.ts"
