/** Versions that go into every trace's provenance. A test holds them against package.json. */
export const version = "0.1.0"
export const effectVersion = "4.1.0"
