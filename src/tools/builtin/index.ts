/**
 * The tools that come with the package, as a toolkit, its handlers and the registry of them. Tool threads load this
 * module by URL; a toolkit of your own is a module of the same shape.
 */
import * as Toolkit from "effect/ai/Toolkit"
import { fromToolkit } from "../Registry.ts"
import { calculate, handleCalculate } from "./calculate.ts"
import { clarify, handleClarify } from "./clarify.ts"
import { echo, handleEcho } from "./echo.ts"
import { fail, handleFail } from "./fail.ts"
import { handleImageFixture, imageFixture } from "./image_fixture.ts"
import { handleListArtifacts, listArtifacts } from "./list_artifacts.ts"
import { handleListFiles, listFiles } from "./list_files.ts"
import { handleLookup, lookup } from "./lookup.ts"
import { handleReadArtifact, readArtifact } from "./read_artifact.ts"
import { handleReadTextFile, readTextFile } from "./read_text_file.ts"
import { handleSearchText, searchText } from "./search_text.ts"
import { handleSlow, slow } from "./slow.ts"
import { handleWebFetch, webFetch } from "./web_fetch.ts"
import { handleWebSearch, webSearch } from "./web_search.ts"
import { handleWriteArtifact, writeArtifact } from "./write_artifact.ts"

/** In the order the shipped model saw them, then those it never saw. */
export const toolkit = Toolkit.make(
  listFiles,
  readTextFile,
  searchText,
  calculate,
  lookup,
  writeArtifact,
  clarify,
  echo,
  imageFixture,
  listArtifacts,
  readArtifact,
  webSearch,
  webFetch,
  fail,
  slow
)

export const handlers = {
  list_files: handleListFiles,
  read_text_file: handleReadTextFile,
  search_text: handleSearchText,
  calculate: handleCalculate,
  lookup: handleLookup,
  write_artifact: handleWriteArtifact,
  clarify: handleClarify,
  echo: handleEcho,
  image_fixture: handleImageFixture,
  list_artifacts: handleListArtifacts,
  read_artifact: handleReadArtifact,
  web_search: handleWebSearch,
  web_fetch: handleWebFetch,
  fail: handleFail,
  slow: handleSlow
}

/** All of them; `Registry.pick` takes the ones a run may use. */
export const registry = fromToolkit(toolkit, handlers)
