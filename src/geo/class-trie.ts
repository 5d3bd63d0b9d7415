import type { GeoCode } from './code.ts'

/**
 * The world reduced to classes: two prefixes have one class when no code in use tells them apart.
 * Class 0 is "unknown, no code matches".
 */
export interface ClassTrie {
  readonly classCount: number
  /** The codes that match clients of that class. */
  readonly codesOf: readonly (readonly GeoCode[])[]
  /** Leaf depth of the last `lookup`, in bits of the client's own family: the ECS scope. */
  depth: number
  /** Class of an address; looks at no more than `bits` of it. `family`: 1 or 2. */
  lookup(address: Uint8Array, family: number, bits: number): number
}
