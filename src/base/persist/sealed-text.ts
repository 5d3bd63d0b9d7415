import { createHash } from 'node:crypto'
import { runWhole } from '../slices.ts'

/**
 * The text of a file that stores data over a restart:
 *
 *     sextant WHAT VERSION [MARK]
 *     …
 *     sha256 HEX (of all before)
 */
export interface SealedForm {
  /** One word, such as `probes`. */
  readonly what: string
  readonly version: string
  /** The words that may follow the version; absent = none. */
  readonly marks?: readonly string[]
}

/** An intact file. */
interface OpenedText {
  readonly kind: 'opened'
  /** '' = none. */
  readonly mark: string
  /** The lines between the first and the last, without their newlines. */
  readonly lines: readonly string[]
}

/** Why a file is refused. A foreign file belongs to another program and must not be overwritten. */
export interface RefusedText {
  readonly kind: 'refused'
  readonly reason: string
  readonly isForeign: boolean
}

const SEAL = 'sha256 '
/** Characters that are hashed at once, and more up to the end of a line. */
const PIECE_LENGTH = 1 << 19

/**
 * Returns the text of such a file in pieces. `lines`: each with its newline; a piece may have
 * several lines.
 */
export function* sealText(
  { what, version }: SealedForm,
  lines: Iterable<string>,
  mark = '',
): Generator<string> {
  const hash = createHash('sha256')
  const header = `sextant ${what} ${version}${mark && ` ${mark}`}\n`
  hash.update(header)
  yield header
  for (const line of lines) {
    hash.update(line)
    yield line
  }
  yield `${SEAL}${hash.digest('hex')}\n`
}

/** Verifies and splits the text of such a file. */
export function openText(text: string, form: SealedForm): RefusedText | OpenedText {
  return runWhole(openInSlices(text, form))
}

/** As `openText`. It may pause. */
export function* openInSlices(
  text: string,
  form: SealedForm,
): Generator<void, RefusedText | OpenedText> {
  const { what, version, marks = [''] } = form
  const magic = `sextant ${what} `
  if (text === '') return refuse('it is empty', false)
  // An incomplete first line of this format is not foreign.
  if (!text.startsWith(magic) && !magic.startsWith(text)) {
    return refuse('it has other content', true)
  }
  const [header = ''] = text.slice(magic.length, magic.length + 64).split('\n', 1)
  const [found = '', ...words] = header.split(' ')
  const mark = words.join(' ')
  const isComplete = text.includes('\n')
  if (isComplete && found !== version) {
    return refuse(`its version is ${JSON.stringify(found)}, not ${version}`, true)
  }
  const body = text.slice(0, Math.max(0, text.lastIndexOf(SEAL)))
  const hash = createHash('sha256')
  for (let at = 0; at < body.length; ) {
    // Each newline is one octet, where other characters may be half of a pair.
    const end = body.indexOf('\n', at + PIECE_LENGTH) + 1 || body.length
    hash.update(body.slice(at, end))
    at = end
    yield
  }
  const digest = hash.digest('hex')
  if (!isComplete || text.slice(body.length) !== `${SEAL}${digest}\n`) {
    return refuse('it is incomplete: its checksum is missing or wrong', false)
  }
  if (!marks.includes(mark)) return refuse('its first line is invalid', false)
  return { kind: 'opened', mark, lines: body.split('\n').slice(1, -1) }
}

export function refuse(reason: string, isForeign: boolean): RefusedText {
  return { kind: 'refused', reason, isForeign }
}
