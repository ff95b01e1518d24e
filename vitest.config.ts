/** Processes, not threads: native inference must not share one with the test runner. Two at once: the machine has two cores. */
import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts", "examples/**/*.test.ts"],
    pool: "forks",
    maxWorkers: 2,
    // Bounds for what hangs. No test waits for a while, so a slow machine only makes them slower.
    testTimeout: 240_000,
    hookTimeout: 120_000,
    teardownTimeout: 20_000
  }
})
