/** Sections of a message, in wire order. */
export const Section = { Answer: 0, Authority: 1, Additional: 2 } as const

export type Section = (typeof Section)[keyof typeof Section]
