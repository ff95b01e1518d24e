/** Takes a report apart far enough to see whether anything but the report itself made markup of it. */
import { gunzipSync } from "node:zlib"
import { script } from "../../src/effects/trace/report/Script.ts"
import { style } from "../../src/effects/trace/report/Style.ts"

const elements =
  "html head meta title style body a header h1 h2 h3 h4 h5 nav ul li main section article div p span strong dl dt dd details summary pre code table thead tbody tr th td form label input select option button svg g defs pattern rect line text footer script"

const attributes =
  "min inputmode data-to lang charset http-equiv content name class href id aria-labelledby aria-label aria-hidden role tabindex width height x y rx x1 x2 y1 y2 patternUnits patternTransform data-lane scope for type autocomplete spellcheck value"

const known = new Set(elements.split(" "))
const allowed = new Set(attributes.split(" "))
const bare = new Set(["hidden", "open"])

/** Complaints about every `<`, tag and attribute that the report does not make, and every address that is not of the page. */
export const foreign = (page: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  const inert = page.replace(`<style>${style}</style>`, "").replace(`<script>${script}</script>`, "")
  for (const part of inert.split("<").slice(1)) {
    if (part.startsWith("!doctype html>")) continue
    const tag = /^(\/?)([a-z0-9]+)((?:\s+[A-Za-z0-9-]+(?:="[^"<]*")?)*)\s*\/?>/.exec(part)
    if (tag === null || !known.has(tag[2]!)) {
      found.push(`<${part.slice(0, 60)}`)
      continue
    }
    // A script beside the page's own holds data, and nothing else.
    if (
      tag[2] === "script" &&
      tag[1] === "" &&
      !/^script type="application\/gzip" class="pack">[A-Za-z0-9+/=]+$/.test(part)
    ) {
      found.push(`<${part.slice(0, 60)}`)
    }
    for (const [, name, value] of tag[3]!.matchAll(/\s+([A-Za-z0-9-]+)(?:="([^"]*)")?/g)) {
      const fits = value === undefined ? bare.has(name!) : allowed.has(name!)
      if (!fits || (name === "href" && !/^#[a-z0-9-]+$/.test(value!))) found.push(`${tag[2]} ${name}="${value}"`)
    }
  }
  return found
}

/** The lines that are packed for the page's script. */
export const unpacked = (page: string): ReadonlyArray<string> =>
  [...page.matchAll(/class="pack">([^<]+)</g)].flatMap(([, block]) =>
    gunzipSync(Buffer.from(block!, "base64")).toString().split("\n")
  )

/** Characters that would act instead of being read. */
export const invisible =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/

/** Texts that try to be more than text. */
export const hostile: ReadonlyArray<string> = [
  "<script>alert(1)</script>",
  `"><img src=x onerror=alert(1)>`,
  "' onmouseover='alert(1)",
  "</pre></title></style><iframe src=https://example.org>",
  "javascript:alert(1)",
  "<!--",
  "]]><svg/onload=alert(1)>",
  "&lt;b&gt;&#60;i&#62;",
  "`${alert(1)}`",
  "\u001b[2J\u001b]0;title\u0007\u009b31m",
  "safe\u202egpj.exe\u202c\u2066\u2069",
  "a\u200bb\ufeffc\u2060\u00ad",
  "\ud800 lone \udc00",
  "\u0000\u2028\u2029",
  "../../../../etc/passwd",
  "__proto__",
  "constructor"
]
