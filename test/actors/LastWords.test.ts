import { assert, describe, it } from "@effect/vitest"
import { lastWords } from "../../src/actors/LastWords.ts"

const stack = Array.from({ length: 200 }, (_, at) => `${at}: 0x${"f".repeat(90)} [node]`).join("\n")
const other = "loading a tensor\n".repeat(100)

describe("what a process said last", () => {
  it("is for want of memory where that ended it, however long the stack behind it is", () => {
    for (const reason of [
      "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
      "FATAL ERROR: Committing semi space failed. Allocation failed - JavaScript heap out of memory",
      "Fatal process out of memory: Worklist::Segment::Create",
      "terminate called after throwing an instance of 'std::bad_alloc'",
      "terminating due to uncaught exception of type std::bad_alloc: std::bad_alloc",
      "what(): std::bad_array_new_length",
      "CUDA error: out of memory"
    ]) {
      const { cause, said } = lastWords(`${other}${reason}\n${stack}\n`)
      assert.deepStrictEqual([cause, said], ["out_of_memory", reason])
    }
  })

  it("is for want of memory where the very last words say so, in whichever way", () => {
    for (const reason of [
      "ggml_aligned_malloc: insufficient memory (attempted to allocate 4.00 MB)",
      "CUDA_ERROR_OUT_OF_MEMORY",
      "vk::Device::allocateMemory: ErrorOutOfDeviceMemory",
      "mmap: Cannot allocate memory",
      "RangeError: Array buffer allocation failed",
      "Error: spawn ENOMEM",
      "CUBLAS_STATUS_ALLOC_FAILED",
      "llama_kv_cache: failed to allocate buffer"
    ]) {
      const { cause, said } = lastWords(`${other}${reason}\n`)
      assert.strictEqual(cause, "out_of_memory", reason)
      assert.include(said, reason)
    }
  })

  it("is a crash where memory was short some time before and something else ended it", () => {
    for (const before of [
      "failed to allocate a buffer, on the processor now",
      "caught std::bad_alloc, a smaller batch"
    ]) {
      const { cause, said } = lastWords(`${before}\n${other}GGML_ASSERT(x != NULL) failed\n`)
      assert.strictEqual(cause, "crashed")
      assert.include(said, "GGML_ASSERT(x != NULL) failed")
    }
    assert.strictEqual(lastWords("pointer out of memory range\nSegmentation fault\n").cause, "crashed")
  })

  it("shows the last reason of several, in one line of at most 600 characters", () => {
    const { said } = lastWords(`std::bad_alloc, tried again\nwhat():  std::bad_alloc ${"y".repeat(2_000)}`)
    assert.match(said, /^what\(\): std::bad_alloc y+$/)
    assert.isAtMost(said.length, 600)
    assert.deepStrictEqual(lastWords(" \n"), { cause: "crashed", said: "" })
  })
})
