import { spawnSync } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"
import { vi } from "vitest"
import { isAlive } from "../../src/tools/Alive.ts"

describe("a process", () => {
  it("is there while it runs, and no process is where no number can be", () => {
    assert.isTrue(isAlive(process.pid))
    assert.isFalse(isAlive(2 ** 31 - 2))
  })

  it("is not touched by being looked for, and is gone when it has ended", () => {
    const program = 'console.log(process.pid); process.on("exit", (code) => console.log(code))'
    const { stdout } = spawnSync(process.execPath, ["-e", program], { encoding: "utf8" })
    const [pid, code] = stdout.trim().split("\n").map(Number)
    assert.strictEqual(code, 0)
    const kill = vi.spyOn(process, "kill")
    try {
      assert.isFalse(isAlive(pid!))
      assert.deepStrictEqual(kill.mock.calls, [[pid!, 0]])
    } finally {
      kill.mockRestore()
    }
  })

  it("is there also where it is somebody else's", () => {
    const kill = vi.spyOn(process, "kill").mockImplementation(() => {
      throw Object.assign(new Error("kill EPERM"), { code: "EPERM" })
    })
    try {
      assert.isTrue(isAlive(1))
    } finally {
      kill.mockRestore()
    }
  })
})
