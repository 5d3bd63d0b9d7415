import fc from 'fast-check'
import t from 'tap'
import {
  DEFAULT_ANSWER,
  decodeDirectory,
  encodeDirectory,
  findSignedType,
  isDirectory,
  proofBy,
  proofOf,
  type SignedType,
  signatureOf,
  signaturesPerAnswer,
} from '../../../src/zone/image/signature-directory.ts'
import { runs } from '../../support/runs.ts'

const SIGNATURES = 40
const RDATA = 20
const PLAIN = { noNullPrototype: true }

const signature = fc.oneof(
  fc.integer({ min: 0, max: SIGNATURES - 3 }),
  fc.integer({ min: 0, max: 9 }).map(proofBy),
)
const signedType: fc.Arbitrary<SignedType> = fc.record(
  {
    type: fc.integer({ min: 1, max: 65535 }),
    signaturesPerAnswer: fc.integer({ min: 1, max: 3 }),
    default: fc.record(
      {
        signature,
        ttlSeconds: fc.integer({ min: 0, max: 0x7fffffff }),
        rdataIndexes: fc.array(fc.integer({ min: 0, max: RDATA - 1 }), { maxLength: 5 }),
      },
      PLAIN,
    ),
    answers: fc.array(signature, { maxLength: 8 }),
  },
  PLAIN,
)
const directory = fc
  .uniqueArray(signedType, { minLength: 1, maxLength: 6, selector: ({ type }) => type })
  .map((types) => types.sort((a, b) => a.type - b.type))
/** The same words with others before them. */
const shifted = (words: Uint32Array, by: number): Uint32Array => {
  return Uint32Array.of(...new Array(by).fill(99), ...words)
}
/** What readers return for a word. */
const found = (word: number): { signature: number; proof: number } => {
  return word >= proofBy(0)
    ? { signature: -1, proof: word - proofBy(0) }
    : { signature: word, proof: 0 }
}

t.test('readers of a directory find what was encoded, wherever it starts', async (t) => {
  const property = fc.property(directory, fc.nat({ max: 9 }), (types, start) => {
    const words = shifted(encodeDirectory(types), start)
    const count = words.length - start
    t.ok(isDirectory(words, start, count, SIGNATURES, () => RDATA))
    t.strictSame(decodeDirectory(words, start), types)
    for (const { type, signaturesPerAnswer: each, default: usual, answers } of types) {
      const block = findSignedType(words, start, type)
      t.equal(signaturesPerAnswer(words, block), each)
      const read = (answer: number): object => {
        return {
          signature: signatureOf(words, block, answer),
          proof: proofOf(words, block, answer),
        }
      }
      t.strictSame(read(DEFAULT_ANSWER), found(usual.signature))
      for (const [i, word] of answers.entries()) t.strictSame(read(i), found(word))
      const beyond = answers.length === 0 ? found(usual.signature) : { signature: -1, proof: 0 }
      t.strictSame(read(answers.length), beyond)
    }
    const missing = types.some(({ type }) => type === 16) ? 65536 : 16
    t.equal(findSignedType(words, start, missing), 0)
  })
  fc.assert(property, { numRuns: runs(200) })
})

t.test('a valid directory of any words is readable, and names only what exists', async (t) => {
  const damaged = fc.tuple(directory, fc.nat(), fc.oneof(fc.nat({ max: 50 }), fc.nat(2 ** 32 - 1)))
  const property = fc.property(damaged, ([types, at, word]) => {
    const words = encodeDirectory(types)
    words[at % words.length] = word
    if (!isDirectory(words, 0, words.length, SIGNATURES, () => RDATA)) return
    for (const { type, signaturesPerAnswer: each, default: usual, answers } of decodeDirectory(
      words,
      0,
    )) {
      const block = findSignedType(words, 0, type)
      const all = [usual.signature, ...answers].map((one) => found(one).signature)
      t.ok(block > 0)
      t.ok(all.every((one) => one === -1 || one + each <= SIGNATURES))
      t.ok(usual.rdataIndexes.every((index) => index < RDATA))
    }
  })
  fc.assert(property, { numRuns: runs(500) })
})

t.test('a directory of words that are missing is invalid', async (t) => {
  const types: SignedType[] = [1, 28].map((type) => ({
    type,
    signaturesPerAnswer: 1,
    default: { signature: 0, ttlSeconds: 60, rdataIndexes: [1] },
    answers: [0, 1, proofBy(1)],
  }))
  const words = encodeDirectory(types)
  for (let count = 0; count <= words.length; count++) {
    const isWhole = count === words.length
    t.equal(
      isDirectory(words, 0, count, 2, () => 2),
      isWhole,
      `${count} words`,
    )
  }
  t.notOk(isDirectory(words, 0, words.length, 1, () => 2))
  t.notOk(isDirectory(words, 0, words.length, 2, (type) => (type === 1 ? 2 : 0)))
})
