import { InputError } from '../../base/errors.ts'
import { memoryLimit } from '../../base/memory-limit.ts'
import { countEntries } from './count-entries.ts'
import type { ZoneText } from './text.ts'

/** Smaller files are loaded whatever the limit is. */
const OCTETS_MIN = 1024 * 1024
/** Octets of a record in the image. A good zone must not be refused, so this is rather too little. */
const IMAGE_OCTETS = 80
/** Octets of the numbers of a record that `ZoneRecords` holds. */
const NUMBERS_OCTETS = 70
const MIB = 2 ** 20

/**
 * Returns an error if loading this file needs more than `memoryMax` octets of memory, as far as its size and number of
 * lines show. The kernel would end the process, and the version in force with it. `hasRecords`: the load holds all
 * records, with their names and data, and not only the image.
 */
export function memoryProblem(
  { file, text }: ZoneText,
  memoryMax: number | 'left' = Number.POSITIVE_INFINITY,
  hasRecords = false,
): InputError | undefined {
  // To ask the system takes 150 µs.
  if (text.length < OCTETS_MIN) return undefined
  const octetsMax = memoryMax === 'left' ? memoryLeft() : memoryMax
  const perRecord = hasRecords ? IMAGE_OCTETS + NUMBERS_OCTETS : IMAGE_OCTETS
  const copies = hasRecords ? 2 : 1
  const needed = countEntries(text).records * perRecord + text.length * copies
  if (needed <= octetsMax) return undefined
  const [need, has] = [needed, Math.max(0, octetsMax)].map((octets) => Math.round(octets / MIB))
  const message = `loading the zone needs about ${need} MiB of memory, and ${has} MiB are left`
  return new InputError({ file, line: 1 }, `${message}; give the server more, or split the zone`)
}

/** Returns the octets of memory that this process may still take. */
export function memoryLeft(): number {
  return memoryLimit() - process.memoryUsage.rss()
}
