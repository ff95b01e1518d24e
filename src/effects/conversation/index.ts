/**
 * Public surface "effect-writ/conversation": conversation files in a program of one's own. Read and write them, make them out
 * of a project, fill their blank slots through the governed loop, with a model or a script.
 */
export * as Advertised from "./Advertised.ts"
export * as Assemble from "./assemble/Assemble.ts"
export * as Conversation from "./Conversation.ts"
export { ConversationError } from "./ConversationError.ts"
export * as ConversationFile from "./ConversationFile.ts"
export * as ConversationText from "./ConversationText.ts"
export * as Filling from "./Filling.ts"
export * as Fixture from "./Fixture.ts"
