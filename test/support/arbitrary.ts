import fc from 'fast-check'

/** Any octets, `minLength`..`maxLength` of them. */
export function arbitraryOctets(maxLength: number, minLength = 0): fc.Arbitrary<Uint8Array> {
  return fc.uint8Array({ minLength, maxLength }).map((octets) => new Uint8Array(octets))
}

const arbitraryLabel = fc.oneof(
  arbitraryOctets(12, 1),
  arbitraryOctets(63, 1),
  fc.stringMatching(/^[a-zA-Z0-9-]{1,12}$/).map((text) => new Uint8Array(Buffer.from(text))),
)

/** Any well-formed name in wire form, from the root to 255 octets. */
export const arbitraryName: fc.Arbitrary<Uint8Array> = fc
  .array(arbitraryLabel, { maxLength: 8 })
  .map((labels) => {
    const octets: number[] = []
    for (const label of labels) {
      if (octets.length + label.length + 2 > 255) break
      octets.push(label.length, ...label)
    }
    return new Uint8Array([...octets, 0])
  })
