import { labelOffsets, lowerName } from '../../dns/name/name.ts'

/** A key file is `<id>.key` or `<id>.private`; an id has a zone, an algorithm and a tag. */
const ID = /^K([^/]*\.)\+(\d{3})\+(\d{5})$/

/** Returns the id of a key: the name of its files in BIND without their ending, such as `Kexample.org.+013+12345`. */
export function keyId(zone: Uint8Array, algorithm: number, tag: number): string {
  const [first, second] = [String(algorithm).padStart(3, '0'), String(tag).padStart(5, '0')]
  return `K${fileNameOf(zone)}+${first}+${second}`
}

/** The parts of an id. */
interface KeyName {
  /** As `fileNameOf` returns it, except that the case of letters may differ. */
  readonly zone: string
  readonly algorithm: number
  readonly tag: number
}

/** Splits an id; undefined = the text is not an id. */
export function scanKeyId(text: string): KeyName | undefined {
  const [, zone, algorithm, tag] = ID.exec(text) ?? []
  if (zone === undefined) return undefined
  return { zone, algorithm: Number(algorithm), tag: Number(tag) }
}

/**
 * Returns a zone's name as BIND writes it into names of files: lower case, absolute, and `%XX` for each octet except
 * letters, digits, `-` and `_`. So a name can't leave its folder.
 */
export function fileNameOf(zone: Uint8Array): string {
  if (zone[0] === 0) return '.'
  const name = Buffer.from(lowerName(zone))
  const labels = labelOffsets(name).map((at) => {
    return name.toString('latin1', at + 1, at + 1 + name[at]!).replace(/[^a-z0-9_-]/g, percent)
  })
  return `${labels.join('.')}.`
}

function percent(character: string): string {
  const hex = character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')
  return `%${hex}`
}
