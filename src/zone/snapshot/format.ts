/**
 * A snapshot file: a zone image, and the facts that the image's owner needs to resume with it.
 *
 *     64 octets   sextant snapshot 5 <octets of the facts> <octets of the arena>     padded with
 *                 spaces, ends with a line feed
 *     facts       JSON, UTF-8
 *     arena       of one version and without garbage (image/layout.ts), in the byte order of the
 *                 machine, which the arena's first word identifies
 *     32 octets   SHA-256 of all before
 *
 * Increment VERSION with every change of this layout, of the arena, of the name hash, of the
 * encoded steering or of the facts. A test fails after such a change until VERSION is incremented.
 */
const VERSION = '5'

export const PREAMBLE_OCTETS = 64
export const CHECKSUM = 'sha256'
export const CHECKSUM_OCTETS = 32
/** Several times the size of the geo codes and serials of 65535 zones. */
const FACTS_OCTETS_MAX = 64 * 1024 * 1024

const MAGIC = 'sextant snapshot '
/** Reason why a file that is not a snapshot is rejected. */
export const FOREIGN = 'it is not a snapshot'

/** Sizes of the parts of a file. */
interface Preamble {
  readonly factsOctets: number
  readonly arenaOctets: number
}

export function printPreamble({ factsOctets, arenaOctets }: Preamble): string {
  const text = `${MAGIC}${VERSION} ${factsOctets} ${arenaOctets}`
  return `${text.padEnd(PREAMBLE_OCTETS - 1)}\n`
}

/** Parses the first octets of a file; a string is the reason why they are invalid. */
export function scanPreamble(octets: Uint8Array): Preamble | string {
  const text = Buffer.from(octets).toString('latin1')
  if (text === '') return 'it is empty'
  // A prefix of our own first line is a torn snapshot, not a foreign file.
  if (!text.startsWith(MAGIC) && !MAGIC.startsWith(text)) return FOREIGN
  const [version = ''] = text.slice(MAGIC.length).split(' ', 1)
  if (octets.length < PREAMBLE_OCTETS)
    return `it is incomplete: it ends after ${octets.length} octets`
  if (version !== VERSION) return `its version is ${JSON.stringify(version)}, not ${VERSION}`
  const match = /^ (\d{1,10}) (\d{1,10}) *\n$/.exec(text.slice(MAGIC.length + VERSION.length))
  const factsOctets = Number(match?.[1])
  const arenaOctets = Number(match?.[2])
  const isSized = factsOctets <= FACTS_OCTETS_MAX && arenaOctets <= 2 ** 32
  if (!isSized || arenaOctets % 4 !== 0) return 'it is damaged: its first line is wrong'
  return { factsOctets, arenaOctets }
}

/** Returns the octets of the whole file. */
export function fileOctets({ factsOctets, arenaOctets }: Preamble): number {
  return PREAMBLE_OCTETS + factsOctets + arenaOctets + CHECKSUM_OCTETS
}
