import t from 'tap'
import { RRType } from '../../../../src/dns/iana/types.ts'
import { RefusedSets } from '../../../../src/publish/zone/signing/refused-sets.ts'
import { encodeSteering, NO_POLICY } from '../../../../src/steering/encode.ts'
import { recordLog } from '../../../support/recorded-log.ts'
import { wire } from '../../../support/zone-names.ts'

const OWNER = wire('a.example.')

/** Steering of which clients can get `endpoints` × (`endpoints` - 1) / 2 answers. */
function pairsOf(endpoints: number): Uint32Array {
  const tier = Array.from({ length: endpoints }, (_, i) => {
    return { weight: 1, ttlSeconds: 60, rdataIndexes: [i] }
  })
  return encodeSteering(NO_POLICY, [tier], { answers: 2 })
}

t.test('all types of a name together have a limit', async (t) => {
  const { log, lines } = recordLog()
  const sets = new RefusedSets(log)
  const many = pairsOf(91)
  const fitting = [RRType.A, RRType.AAAA, RRType.TXT, RRType.PTR]
  for (const type of fitting) t.ok(sets.accepts(OWNER, type, many))
  t.notOk(sets.accepts(OWNER, RRType.MX, many))
  t.match(lines.at(-1), /^.*a\.example\. MX has 4095 possible answers, and .* more than 16384/)
  t.ok(sets.has(OWNER, RRType.MX))
  t.ok(sets.accepts(OWNER, RRType.PTR, many), 'a set that is there again')
  t.ok(sets.accepts(OWNER, RRType.MX, undefined), 'a set that is not steered')
  t.ok(sets.accepts(wire('b.example.'), RRType.MX, many), 'another name')
  t.notOk(sets.accepts(OWNER, RRType.MX, many))
  sets.forget(OWNER, RRType.A)
  t.ok(sets.accepts(OWNER, RRType.MX, many))
  t.strictSame([...sets.reasons], [])
})

t.test('NS of a wildcard would make a cut whose names exist', async (t) => {
  const { log, lines } = recordLog()
  const sets = new RefusedSets(log)
  t.notOk(sets.accepts(wire('*.a.example.'), RRType.NS, undefined))
  t.match(lines.at(-1), /\*\.a\.example\. NS of a wildcard cannot be signed: use NS records of/)
  t.ok(sets.accepts(wire('*.a.example.'), RRType.A, undefined))
  t.ok(sets.accepts(OWNER, RRType.NS, undefined))
})
