/** Measures, inside a page, the contrast of every text with the ground it stands on, as WCAG 2 defines it. */

export interface Contrast {
  readonly text: string
  readonly colour: string
  readonly ratio: number
}

/** An expression for the browser, whose types are not those of this program. Its value: a `Contrast` for every text. */
export const contrasts = `(() => {
  const parts = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number)
  const luminance = (colour) => {
    const [r, g, b] = parts(colour).map((part) => {
      const value = part / 255
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const ground = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor
      if ((parts(colour)[3] ?? 1) > 0) return colour
    }
    return "rgb(255, 255, 255)"
  }
  const found = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const parent = node.parentElement
    const text = (node.textContent ?? "").trim()
    if (parent === null || text === "" || !parent.checkVisibility()) continue
    const style = getComputedStyle(parent)
    const colour = parent instanceof SVGElement ? style.fill : style.color
    const [bright, dark] = [luminance(colour), luminance(ground(parent))].sort((a, b) => b - a)
    found.push({ text: text.slice(0, 40), colour, ratio: (bright + 0.05) / (dark + 0.05) })
  }
  return found
})()`
