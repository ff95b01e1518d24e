/**
 * Content that spells what a server's tokeniser could take for a control token. Where token ids are ours to put together,
 * such a text is cut inside the spelling, which changes no character. Where a server tokenises whole texts itself, a
 * space behind the first character takes the spelling apart, which model and reader can see.
 */

/** Where something begins that looks like a tag: cutting behind its first character costs nothing. */
const tags = /<(?=[^<>\s]{1,80}>)|\[(?=\/?[A-Za-z_]{3,40}\])/g

/** The text in parts that hold no tag. */
export const cut = (text: string): ReadonlyArray<string> => {
  const parts: Array<string> = []
  let start = 0
  for (const { index } of text.matchAll(tags)) {
    parts.push(text.slice(start, index + 1))
    start = index + 1
  }
  if (start < text.length || parts.length === 0) parts.push(text.slice(start))
  return parts
}

/** Spellings of control tokens in the vocabularies of the families there are codecs for, and of those like them. */
const spelled =
  /<(?=[|｜][^<>\s]{1,80}>|[^<>\s|｜]{1,80}[|｜]>|\/?(?:s|think|tools?|tool_calls?|tool_response|tool_result|im_start|im_end)>|(?:bos|eos|unk|pad|mask|(?:start|end)_(?:of_|function_)[a-z_]{1,40}|escape)>)|\[(?=\/?(?:INST|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|AVAILABLE_TOOLS|SYSTEM_PROMPT|MODEL_SETTINGS|ARGS|CALL_ID|THINK|IMG|IMG_BREAK|IMG_END|gMASK)\])/g

/** The text with each such spelling taken apart. */
export const visible = (text: string): string => text.replace(spelled, (first) => `${first} `)
