/** Numbers of the GGUF format: how many bytes a tensor of each type takes, and what file types are called. */

/** Elements and bytes of one block, by tensor type. A type that is not listed is newer than this table. */
const blocks: Readonly<Record<number, readonly [elements: number, bytes: number]>> = {
  0: [1, 4],
  1: [1, 2],
  2: [32, 18],
  3: [32, 20],
  6: [32, 22],
  7: [32, 24],
  8: [32, 34],
  9: [32, 36],
  10: [256, 84],
  11: [256, 110],
  12: [256, 144],
  13: [256, 176],
  14: [256, 210],
  15: [256, 292],
  16: [256, 66],
  17: [256, 74],
  18: [256, 98],
  19: [256, 50],
  20: [32, 18],
  21: [256, 110],
  22: [256, 82],
  23: [256, 136],
  24: [1, 1],
  25: [1, 2],
  26: [1, 4],
  27: [1, 8],
  28: [1, 8],
  29: [256, 56],
  30: [1, 2],
  34: [256, 54],
  35: [256, 66],
  39: [32, 17]
}

/** Bytes of `elements` weights of tensor type `type`; 0 for a type this table does not know, so that it is not refused. */
export const tensorBytes = (type: number, elements: number): number => {
  const block = blocks[type]
  return block === undefined ? 0 : Math.ceil(elements / block[0]) * block[1]
}

const fileTypes: Readonly<Record<number, string>> = {
  0: "F32",
  1: "F16",
  2: "Q4_0",
  3: "Q4_1",
  7: "Q8_0",
  8: "Q5_0",
  9: "Q5_1",
  10: "Q2_K",
  11: "Q3_K_S",
  12: "Q3_K_M",
  13: "Q3_K_L",
  14: "Q4_K_S",
  15: "Q4_K_M",
  16: "Q5_K_S",
  17: "Q5_K_M",
  18: "Q6_K",
  19: "IQ2_XXS",
  20: "IQ2_XS",
  21: "Q2_K_S",
  22: "IQ3_XS",
  23: "IQ3_XXS",
  24: "IQ1_S",
  25: "IQ4_NL",
  26: "IQ3_S",
  27: "IQ3_M",
  28: "IQ2_S",
  29: "IQ2_M",
  30: "IQ4_XS",
  31: "IQ1_M",
  32: "BF16",
  36: "TQ1_0",
  37: "TQ2_0",
  38: "MXFP4_MOE"
}

/** The common name of `general.file_type`, for example `Q4_K_M`; a number this table does not know stays a number. */
export const fileTypeName = (type: number | undefined): string | undefined =>
  type === undefined ? undefined : (fileTypes[type] ?? `type ${type}`)
