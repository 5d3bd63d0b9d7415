import { assert } from '../../base/assert.ts'

/*
 * The signature directory of an RRSIG RRset: which of its records sign which answer. It is in the words that other
 * RRsets use for their steering. Only zones that this server signs have directories. Offsets count words from word 0.
 *
 *     word 0      count of types t, 1..RRSETS_MAX
 *     t × offset of the block of a type, ascending by type
 *     block       type << 16 | s: signatures per answer, one for each signing key
 *                 count n of possible answers; 0 = the RRset is not steered
 *                 signature of the default answer
 *                 TTL of the default answer
 *                 k, then k × index of an rdata of the default answer; 0 = all records, or no record if n > 0
 *                 n × signature of the answer
 *     signature   index, in the RRSIG RRset, of the first of the s signatures; equal answers share them. For an answer
 *                 without records (NODATA): PROOF | number of the answer of type NSEC or NSEC3 that proves it
 *
 * The NSEC or NSEC3 RRset of a name with such answers has several rdata with the same next name. Answer i of it is
 * rdata i: the default answer 0 lists all types, and each other one lacks a type that may have no records.
 */

/** Marks the number of a proof, in place of a signature. */
const PROOF = 0x80000000

/** The signatures of one RRset. */
export interface SignedType {
  readonly type: number
  readonly signaturesPerAnswer: number
  /** The answer for transfers and for queries for RRSIG. */
  readonly default: {
    /** Index of its first signature, or `proofBy`. */
    readonly signature: number
    readonly ttlSeconds: number
    /** Empty = all records of a set that is not steered, otherwise none. */
    readonly rdataIndexes: readonly number[]
  }
  /** By answer number: index of its first signature, or `proofBy`. Empty = the set is not steered. */
  readonly answers: readonly number[]
}

/** What an answer without records has in place of a signature. `answer`: number of an NSEC or NSEC3 answer. */
export function proofBy(answer: number): number {
  return (PROOF | answer) >>> 0
}

/** Number of the default answer. */
export const DEFAULT_ANSWER = -1

const TYPES_WORD = 1
const ANSWER_COUNT = 1
const DEFAULT_SIGNATURE = 2
const DEFAULT_TTL = 3
const DEFAULT_COUNT = 4
const DEFAULT_REST = 5

/** Returns the words of a directory. `types`: at least one, ascending by type. */
export function encodeDirectory(types: readonly SignedType[]): Uint32Array {
  assert(types.length > 0, 'a directory has types')
  const words: number[] = [types.length, ...types.map(() => 0)]
  for (const [i, { type, signaturesPerAnswer, default: usual, answers }] of types.entries()) {
    assert(i === 0 || types[i - 1]!.type < type, 'types of a directory are ascending')
    words[TYPES_WORD + i] = words.length
    words.push(((type << 16) | signaturesPerAnswer) >>> 0, answers.length)
    words.push(usual.signature, usual.ttlSeconds, usual.rdataIndexes.length)
    for (const index of usual.rdataIndexes) words.push(index)
    for (const signature of answers) words.push(signature)
  }
  return new Uint32Array(words)
}

/** Returns how many types the directory at `words[offset]` has. */
export function signedTypeCount(words: Uint32Array, offset: number): number {
  return words[offset]!
}

/** Returns the place of the block of type number `index` in the directory at `words[offset]`. */
export function signedTypeAt(words: Uint32Array, offset: number, index: number): number {
  return offset + words[offset + TYPES_WORD + index]!
}

/** Returns the place of the block of a type in the directory at `words[offset]`; 0 = the type is not signed. @hot */
export function findSignedType(words: Uint32Array, offset: number, type: number): number {
  const count = words[offset]!
  for (let i = 0; i < count; i++) {
    const block = signedTypeAt(words, offset, i)
    if (typeOf(words, block) === type) return block
  }
  return 0
}

/** Returns the type of the block. */
export function typeOf(words: Uint32Array, block: number): number {
  return words[block]! >>> 16
}

/** Returns the TTL of the default answer of the block, in seconds. */
export function defaultTtlOf(words: Uint32Array, block: number): number {
  return words[block + DEFAULT_TTL]!
}

/** Returns how many signatures each answer of the block has. @hot */
export function signaturesPerAnswer(words: Uint32Array, block: number): number {
  return words[block]! & 0xffff
}

/**
 * Returns the index of the first signature of an answer: its number, or DEFAULT_ANSWER. -1 = it has none. A set that is
 * not steered has the default answer only. @hot
 */
export function signatureOf(words: Uint32Array, block: number, answer: number): number {
  const word = answerWord(words, block, answer)
  return word >= PROOF ? -1 : word
}

/** Returns the number of the NSEC or NSEC3 answer that proves an answer without records; 0 = the default one. @hot */
export function proofOf(words: Uint32Array, block: number, answer: number): number {
  const word = answerWord(words, block, answer)
  return word >= PROOF ? word - PROOF : 0
}

function answerWord(words: Uint32Array, block: number, answer: number): number {
  const count = words[block + ANSWER_COUNT]!
  if (count === 0 || answer === DEFAULT_ANSWER) return words[block + DEFAULT_SIGNATURE]!
  if (answer >= count) return PROOF
  return words[block + DEFAULT_REST + words[block + DEFAULT_COUNT]! + answer]!
}

/** Returns the places of the blocks of all types of the directory at `words[offset]`, ascending by type. */
export function signedTypes(words: Uint32Array, offset: number): number[] {
  const starts = words.subarray(offset + TYPES_WORD, offset + TYPES_WORD + words[offset]!)
  return Array.from(starts, (start) => offset + start)
}

/** Returns the rdata of the default answer of a block, and its TTL; undefined = all rdata of the set, with its TTL. */
export function defaultAnswer(
  words: Uint32Array,
  block: number,
): { readonly rdataIndexes: Uint32Array; readonly ttlSeconds: number } | undefined {
  const count = words[block + DEFAULT_COUNT]!
  if (count === 0 && words[block + ANSWER_COUNT] === 0) return undefined
  const rdata = block + DEFAULT_REST
  const ttlSeconds = words[block + DEFAULT_TTL]!
  return { rdataIndexes: words.subarray(rdata, rdata + count), ttlSeconds }
}

/** Returns the types and answers of the directory at `words[offset]`. */
export function decodeDirectory(words: Uint32Array, offset: number): SignedType[] {
  const starts = words.subarray(offset + TYPES_WORD, offset + TYPES_WORD + words[offset]!)
  return Array.from(starts, (start) => {
    const block = offset + start
    const rdata = block + DEFAULT_REST
    const answers = rdata + words[block + DEFAULT_COUNT]!
    return {
      type: typeOf(words, block),
      signaturesPerAnswer: signaturesPerAnswer(words, block),
      default: {
        signature: words[block + DEFAULT_SIGNATURE]!,
        ttlSeconds: defaultTtlOf(words, block),
        rdataIndexes: [...words.subarray(rdata, answers)],
      },
      answers: [...words.subarray(answers, answers + words[block + ANSWER_COUNT]!)],
    }
  })
}

/** Returns the indexes of the signatures of all default answers in the directory at `words[offset]`. */
export function defaultSignatures(words: Uint32Array, offset: number): number[] {
  return decodeDirectory(words, offset).flatMap(
    ({ signaturesPerAnswer: count, default: usual }) => {
      const { signature } = usual
      return signature >= PROOF ? [] : Array.from({ length: count }, (_, i) => signature + i)
    },
  )
}

/**
 * True if `count` words at `words[offset]` are a directory of an RRSIG RRset with `signatures` records, so that no
 * reader leaves them. `rdataCountOf` returns how many rdata the RRset of a type has; 0 = the name does not have it.
 */
export function isDirectory(
  words: Uint32Array,
  offset: number,
  count: number,
  signatures: number,
  rdataCountOf: (type: number) => number,
): boolean {
  const directory = words.subarray(offset, offset + count)
  const types = directory[0] ?? 0
  const head = TYPES_WORD + types
  if (types === 0 || head > count) return false
  for (let i = TYPES_WORD, typeBefore = 0; i < head; i++) {
    const block = directory[i]!
    if (block < head || block + DEFAULT_REST > count) return false
    const type = typeOf(directory, block)
    if (type <= typeBefore || !isBlock(directory, block, signatures, rdataCountOf(type)))
      return false
    typeBefore = type
  }
  return true
}

function isBlock(
  directory: Uint32Array,
  block: number,
  signatures: number,
  rdataCount: number,
): boolean {
  const perAnswer = signaturesPerAnswer(directory, block)
  const rdata = block + DEFAULT_REST
  const answers = rdata + directory[block + DEFAULT_COUNT]!
  const end = answers + directory[block + ANSWER_COUNT]!
  const isSized = perAnswer > 0 && answers <= directory.length && end <= directory.length
  if (!isSized || defaultTtlOf(directory, block) >= 2 ** 31) return false
  const fits = (signature: number): boolean => {
    return signature >= PROOF || signature + perAnswer <= signatures
  }
  return (
    fits(directory[block + DEFAULT_SIGNATURE]!) &&
    directory.subarray(rdata, answers).every((index) => index < rdataCount) &&
    directory.subarray(answers, end).every(fits)
  )
}
