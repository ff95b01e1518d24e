/** The least a program pays that reads a trace: the file read and every line parsed, with nothing but Node. */
import { closeSync, openSync, readSync } from "node:fs"

const file = openSync(process.argv[2]!, "r")
const chunk = Buffer.allocUnsafeSlow(64 * 1024)
let rest = Buffer.alloc(0)
let lines = 0
for (let read = readSync(file, chunk); read > 0; read = readSync(file, chunk)) {
  const bytes = Buffer.concat([rest, chunk.subarray(0, read)])
  let start = 0
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
    JSON.parse(bytes.toString("utf8", start, end))
    lines += 1
    start = end + 1
  }
  rest = bytes.subarray(start)
}
closeSync(file)
console.log(lines)
