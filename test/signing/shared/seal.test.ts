import { createSecretKey } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import {
  composeKeyQuestion,
  createNonce,
  scanKeyQuestion,
  TOKEN_OCTETS,
} from '../../../src/signing/shared/key-question.ts'
import { composeKeyReply, scanKeyReply } from '../../../src/signing/shared/key-reply.ts'
import { digestText, isStrong, seal, unseal } from '../../../src/signing/shared/seal.ts'
import { arbitraryName } from '../../support/arbitrary.ts'
import { wire } from '../../support/zone-names.ts'

const SECRET = createSecretKey(Buffer.alloc(32, 1))
const octets = (options?: fc.IntArrayConstraints): fc.Arbitrary<Uint8Array> => {
  return fc.uint8Array(options)
}

t.test('what is sealed can be read only with the same secret and context', async (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), octets(), fc.nat(), (text, context, at) => {
      const sealed = seal(text, SECRET, context)
      t.equal(unseal(sealed, SECRET, context), text)
      t.notOk(seal(text, SECRET, context).equals(sealed), 'a salt')
      t.equal(unseal(sealed, SECRET, Buffer.concat([context, Buffer.of(0)])), undefined)
      t.equal(unseal(sealed, createSecretKey(Buffer.alloc(32, 2)), context), undefined)
      t.equal(unseal(sealed.subarray(0, at % sealed.length), SECRET, context), undefined)
      sealed[at % sealed.length]! ^= 1
      t.equal(unseal(sealed, SECRET, context), undefined)
    }),
  )
  const text = 'PrivateKey: abcdefghijklmnop'
  t.notOk(seal(text, SECRET, Buffer.alloc(0)).includes(text.slice(0, 8)))
})

t.test('a digest depends on text, secret and nonce', async (t) => {
  const digests = [
    digestText('a', SECRET, Buffer.from('n')),
    digestText('b', SECRET, Buffer.from('n')),
    digestText('a', SECRET, Buffer.from('m')),
    digestText('a', createSecretKey(Buffer.alloc(32, 2)), Buffer.from('n')),
  ].map((digest) => Buffer.from(digest).toString('hex'))
  t.equal(new Set(digests).size, digests.length)
  t.ok(digests.every((digest) => digest.length === 2 * TOKEN_OCTETS))
})

t.test('secrets that are too short', async (t) => {
  for (const [length, want] of [
    [1, false],
    [15, false],
    [16, true],
    [64, true],
  ] as const)
    t.equal(isStrong(createSecretKey(Buffer.alloc(length, 1))), want, `${length} octets`)
})

t.test('a question is read as it was written', async (t) => {
  const token = octets({ minLength: TOKEN_OCTETS, maxLength: TOKEN_OCTETS })
  fc.assert(
    fc.property(arbitraryName, token, token, (zone, nonce, digest) => {
      const name = composeKeyQuestion({ zone, nonce, digest })
      if (name === undefined) return t.ok(zone.length > 170, 'only long names')
      const read = scanKeyQuestion(name)!
      t.strictSame(
        [read.zone, read.nonce, read.digest].map((one) => Buffer.from(one)),
        [zone, nonce, digest].map((one) => Buffer.from(one)),
      )
      return t.equal(scanKeyQuestion(zone), undefined)
    }),
  )
  t.equal(createNonce().length, TOKEN_OCTETS)
})

t.test('names that ask for no keys', async (t) => {
  const token = 'a'.repeat(32)
  for (const name of [
    '.',
    'example.',
    `_sextant-keys.example.`,
    `${token}._sextant-keys.example.`,
    `${token}.${token}.example.`,
    `${token}.${token}._keys.example.`,
    `${token}.${token}x._sextant-keys.example.`,
    `${token}.${token.slice(1)}g._sextant-keys.example.`,
    `x.${token}.${token}._sextant-keys.example.`,
  ])
    t.equal(scanKeyQuestion(wire(name)), undefined, name)
})

t.test('a reply is read as it was written', async (t) => {
  fc.assert(
    fc.property(octets({ maxLength: 2000 }), (sealed) => {
      const reply = scanKeyReply(composeKeyReply(sealed))
      if (sealed.length === 0) return t.strictSame(reply, { kind: 'current' })
      if (reply.kind !== 'sealed') return t.fail(reply.kind)
      return t.equal(Buffer.compare(reply.octets, sealed), 0)
    }),
  )
  fc.assert(
    fc.property(octets(), (rdata) => {
      const reply = scanKeyReply(rdata)
      return reply.kind !== 'unknown' || reply.format !== 1
    }),
  )
})
