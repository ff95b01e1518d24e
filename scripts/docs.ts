/** Writes docs/tools.md from the tools that come with the package. `npm run docs`; a test says whether the page is current. */
import { writeFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import { toolsPage } from "./toolsPage.ts"

const page = new URL("../docs/tools.md", import.meta.url)

writeFileSync(page, await Effect.runPromise(toolsPage))
console.log("docs/tools.md written")
