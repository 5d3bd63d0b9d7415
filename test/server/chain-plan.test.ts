import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { type Handler, Trait } from '../../src/plugin/handler.ts'
import { Errors } from '../../src/plugins/errors/errors.ts'
import { Loadbalance } from '../../src/plugins/loadbalance/loadbalance.ts'
import { Minimal } from '../../src/plugins/minimal/minimal.ts'
import { planChain, traitsOf } from '../../src/server/chain-plan.ts'
import { encodeSteering, NO_POLICY } from '../../src/steering/encode.ts'
import { SteeringTable } from '../../src/steering/table.ts'
import { ZoneAnswerer } from '../../src/zone/lookup/answer.ts'
import { transaction } from '../support/transaction.ts'
import { wireQuery } from '../support/wire.ts'
import { imageOf } from '../support/zone-lines.ts'
import { wire } from '../support/zone-names.ts'
import {
  elsewhere,
  inMemory,
  kuadrant,
  opaque,
  type Setting,
  start,
  ZONE,
} from './chain-plan-stage.ts'

t.test('every change of the zones is seen, where they are and which there are', async (t) => {
  const { image, ...fixture } = start({ lines: ZONE, above: (next) => next })
  const packet = (name: string): Uint8Array => wireQuery({ name })
  const address = (name: string): string | undefined => {
    const reply = inMemory(fixture, packet(name))
    return reply[7] === 0 ? undefined : reply.slice(-4).join('.')
  }
  const put = (zone: number, name: string, last: number): void => {
    image.putRRset(zone, wire(name), {
      type: RRType.A,
      ttlSeconds: 9,
      rdata: [Uint8Array.of(10, 0, 0, last)],
    })
  }
  const org = image.findZone(wire('example.org.'))!
  t.equal(address('www.example.org'), '192.0.2.1')

  put(org, 'www.example.org.', 1)
  t.equal(address('www.example.org'), '192.0.2.1', 'what is not published is not seen')
  image.publish()
  t.equal(address('www.example.org'), '10.0.0.1')

  // The same version, with the zone somewhere else.
  image.compact()
  t.equal(address('www.example.org'), '10.0.0.1')
  put(org, 'abc.example.org.', 2)
  image.publish()
  t.equal(address('abc.example.org'), '10.0.0.2')

  const below = image.addZone(wire('sub.example.org.'))
  put(below, 'www.sub.example.org.', 3)
  put(org, 'x.example.org.', 4)
  image.publish()
  t.equal(address('x.example.org'), '10.0.0.4')
  t.equal(address('www.sub.example.org'), '10.0.0.3')
  t.equal(
    address('abc.sub.example.org'),
    undefined,
    'names of the zone above are not in the one below',
  )

  image.removeRRset(org, wire('x.example.org.'), RRType.A)
  image.publish()
  t.equal(address('x.example.org'), undefined)
  image.removeZone(org)
  image.publish()
  t.equal(address('www.example.org'), undefined)
  t.equal(address('www.sub.example.org'), '10.0.0.3')
})

t.test('each query has one draw, whatever form its answer has', async (t) => {
  const outcome = (weight: number, ...rdataIndexes: number[]) => {
    return { weight, ttlSeconds: 60, rdataIndexes }
  }
  const tier = [outcome(1, 0), outcome(1, ...Array.from({ length: 39 }, (_, i) => i + 1))]
  const words = encodeSteering(NO_POLICY, [tier])
  const address = (i: number): string => `www.example.org. 60 A 192.0.2.${i}`
  const aliasWords = encodeSteering(NO_POLICY, [[outcome(1, 0), outcome(1, 1)]])
  const lines = [
    'example.org. 30 SOA 90',
    `${address(0)} | ${words.join(' ')}`,
    ...Array.from({ length: 39 }, (_, i) => address(i + 1)),
    'host.example.org. 60 CNAME alias.example.org.',
    `alias.example.org. 60 CNAME one.example.org. | ${aliasWords.join(' ')}`,
    'alias.example.org. 60 CNAME outside.example.com.',
    'one.example.org. 60 A 192.0.2.99',
  ]
  const setting = (above: Setting['above']): Setting => {
    const random = new Random(7)
    const table = new SteeringTable({ locator: undefined, random, onError: () => {} })
    return { lines, above, steerer: table.steerer() }
  }
  const balanced = (next: Handler): Handler => {
    return new Loadbalance(next, { weights: undefined, preferred: [] })
  }
  const alone = (next: Handler): Handler => next
  for (const { name, above, payload, qname = 'www', few = 1 } of [
    { name: 'records are reordered', above: balanced, payload: 1232 },
    { name: 'the reply has no room for all', above: alone, payload: 512 },
    { name: 'one of two CNAMEs leads out', above: alone, payload: 1232, qname: 'host', few: 2 },
  ]) {
    const packet = wireQuery({ name: `${qname}.example.org`, edns: { payload } })
    const planned = start(setting(above))
    const whole = start({ ...setting(above), isOpaque: true })
    let single = 0
    for (let i = 0; i < 400; i++) {
      const reply = inMemory(planned, packet)
      const want = elsewhere(whole, packet)
      if (Buffer.compare(reply, want) !== 0) return t.same(reply, want, `${name}: draw ${i}`)
      if (reply[7] === few) single++
    }
    t.ok(single > 150 && single < 250, `${name}: ${single} of 400 have ${few} records`)
  }
})

t.test('a plan ends at the first handler that serves as a whole', async (t) => {
  const answerer = new ZoneAnswerer(imageOf(ZONE).reader())
  const bottom = kuadrant(answerer)
  const namesOf = (chain: Handler): string[] => {
    const { links, bottom } = planChain(chain)
    return [...links.map(({ handler }) => handler.name), bottom.name]
  }
  const toy = opaque(bottom)
  t.strictSame(namesOf(new Minimal(new Errors(bottom, () => {}))), [
    'minimal',
    'errors',
    'kuadrant',
  ])
  t.strictSame(namesOf(new Minimal(toy)), ['minimal', 'opaque'])
  t.equal(planChain(new Minimal(bottom)).source, bottom)
  t.equal(planChain(new Minimal(toy)).source, undefined)
})

t.test('the traits of queries that concern DNSSEC', async (t) => {
  const concerns = (type: number, dnssecOk: boolean): boolean => {
    const { query } = transaction({ name: 'example.org.', type, dnssecOk })
    return (traitsOf(query) & Trait.Dnssec) !== 0
  }
  const { A, DS, SSHFP, RRSIG, NSEC, DNSKEY, CDS, CDNSKEY, OPENPGPKEY } = RRType
  for (const type of [A, DS, SSHFP, OPENPGPKEY]) t.equal(concerns(type, false), false, `${type}`)
  for (const type of [RRSIG, NSEC, DNSKEY, CDS, CDNSKEY]) t.ok(concerns(type, false), `${type}`)
  t.ok(concerns(A, true), 'DO')
})
