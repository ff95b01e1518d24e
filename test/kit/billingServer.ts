/**
 * Two billing services in a process of their own: `node billingServer.ts`. It says its port on stdout and ends when its
 * stdin does. `/keyed/BOOK/invoices` honours idempotency keys, `/plain/BOOK/invoices` makes an invoice each time it is
 * asked. With `?hold` the invoice is made and nobody is told. Books are kept apart, so that many cases share one process.
 */
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"

interface Invoice {
  readonly id: string
  readonly order: string
  readonly key: string
}

const books = new Map<string, Array<Invoice>>()

const bodyOf = async (request: IncomingMessage): Promise<{ readonly order: string }> => {
  let text = ""
  for await (const chunk of request) text += String(chunk)
  return JSON.parse(text) as { readonly order: string }
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url ?? "/", "http://127.0.0.1")
  const [, service, book = ""] = url.pathname.split("/")
  const invoices = books.get(book) ?? []
  books.set(book, invoices)
  response.setHeader("content-type", "application/json")
  if (request.method !== "POST") {
    const order = url.searchParams.get("order")
    response.end(JSON.stringify(invoices.filter((invoice) => order === null || invoice.order === order)))
    return
  }
  const { order } = await bodyOf(request)
  const key = String(request.headers["idempotency-key"] ?? "")
  const known = service === "keyed" ? invoices.find((invoice) => invoice.key === key) : undefined
  const invoice = known ?? { id: `INV-${invoices.length + 1}`, order, key }
  if (known === undefined) invoices.push(invoice)
  if (!url.searchParams.has("hold")) response.end(JSON.stringify(invoice))
})

server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`))
process.stdin.resume().once("end", () => process.exit(0))
