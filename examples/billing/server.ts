/**
 * A billing service that can be told to misbehave: `node server.ts --fault NAME --books FILE`. It says its port on stdout and
 * ends when its stdin does. It honours idempotency keys and keeps its books in a file, as a service elsewhere would keep them.
 *
 *   POST /invoices            makes an invoice         GET /invoices      all of them
 *                                                      GET /invoices/ID   one of them
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { parseArgs } from "node:util"

const { values } = parseArgs({
  options: { fault: { type: "string", default: "none" }, books: { type: "string", default: "books.json" } }
})
const { books, fault } = values

interface Invoice {
  readonly id: string
  readonly order: string
  readonly cents: number
  readonly key: string
  status: "issued" | "pending" | "rejected"
}

const invoices: Array<Invoice> = existsSync(books) ? JSON.parse(readFileSync(books, "utf8")) : []
let lost = 0
let looks = 0

const answer = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(JSON.stringify(body))
}

const bodyOf = async (request: IncomingMessage): Promise<{ readonly order: string; readonly cents: number }> => {
  let text = ""
  for await (const chunk of request) text += String(chunk)
  return JSON.parse(text)
}

/** One invoice per key. Without a key, one per request: that is what most services do. */
const make = (order: string, cents: number, key: string): Invoice => {
  const known = invoices.find((invoice) => key !== "" && invoice.key === key)
  if (known !== undefined) return known
  const status = fault.startsWith("accepted") ? "pending" : "issued"
  const invoice: Invoice = { id: `INV-${invoices.length + 1}`, order, cents, key, status }
  invoices.push(invoice)
  writeFileSync(books, JSON.stringify(invoices, undefined, 2))
  return invoice
}

const post = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  if (fault === "down") {
    request.socket.destroy()
    return
  }
  const { cents, order } = await bodyOf(request)
  const invoice = make(order, cents, String(request.headers["idempotency-key"] ?? ""))
  // The invoice exists; the answer never arrives.
  if (fault === "lost-answer" && lost++ === 0) request.socket.destroy()
  else answer(response, fault.startsWith("accepted") ? 202 : 201, invoice)
}

/** An invoice that was merely accepted is turned down when it is looked at for the second time, or stays as it is. */
const get = (id: string | undefined, response: ServerResponse): void => {
  if (id === undefined) {
    answer(response, 200, invoices)
    return
  }
  const invoice = invoices.find((one) => one.id === id)
  if (invoice !== undefined && fault === "accepted-then-fails" && ++looks === 2) {
    invoice.status = "rejected"
    writeFileSync(books, JSON.stringify(invoices, undefined, 2))
  }
  answer(response, invoice === undefined ? 404 : 200, invoice ?? {})
}

const server = createServer((request, response) => {
  const [, , id] = (request.url ?? "").split("/")
  if (request.method === "POST") void post(request, response)
  else get(id, response)
})

server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`))
process.stdin.resume().once("end", () => process.exit(0))
