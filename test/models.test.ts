/** The model that ships is, byte for byte, the one that its report measured. */
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"

const folder = join(import.meta.dirname, "..", "models", "tiny-tool-agent")
const digest = (file: string) =>
  createHash("sha256")
    .update(readFileSync(join(folder, file)))
    .digest("hex")

describe("models/tiny-tool-agent", () => {
  it("holds the model file with the known digest", () => {
    expect(digest("tiny-tool-agent-q8_0.gguf")).toBe("c13a927f6722b788956d3099d1817353d1da9773f2ed60eadf17468345db96db")
  })

  it.each(["tiny-tool-agent-q8_0.gguf", "tokenizer.json", "train.py", "trainer.c", "evaluate.mjs"])(
    "holds %s as its report lists it",
    (file) => {
      const report = readFileSync(join(folder, "REPORT.md"), "utf8")
      expect(report).toMatch(new RegExp(`^\\| ${file.replaceAll(".", "\\.")} \\|.*\`${digest(file)}\``, "m"))
    }
  )
})
