/** Public surface "./files": tools that are files of a directory (`NAME.tool.json`) in a run. */
export * as FileTools from "./effects/FileTools.ts"
