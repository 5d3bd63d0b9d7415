import { test } from 'tap'
import { Dispenser } from '../../../src/corefile/dispenser.ts'
import { scanTokens } from '../../../src/corefile/lexer.ts'
import { printName } from '../../../src/dns/name/name.ts'
import { NO_FALLTHROUGH, scanFallthrough } from '../../../src/plugin/arguments/fallthrough.ts'
import { scanZoneArgs, scanZoneArgsOrBlock } from '../../../src/plugin/arguments/zones.ts'
import { blockConfig } from '../../support/setup.ts'
import { transaction } from '../../support/transaction.ts'

function dispenser(text: string): Dispenser {
  const d = new Dispenser(scanTokens(text, 'Corefile'))
  d.next()
  return d
}

const cases: { name: string; given: string; qname: string; want: boolean }[] = [
  { name: 'no zones are all', given: 'fallthrough', qname: 'a.example.', want: true },
  { name: 'inside a zone', given: 'fallthrough b. example', qname: 'a.example.', want: true },
  { name: 'the zone itself', given: 'fallthrough EXAMPLE.', qname: 'example.', want: true },
  { name: 'outside of all', given: 'fallthrough example.', qname: 'a.example.org.', want: false },
  { name: 'a CIDR', given: 'fallthrough 10.0.0.0/8', qname: '1.0.0.10.in-addr.arpa.', want: true },
]

for (const { name, given, qname, want } of cases) {
  test(`fallthrough: ${name}`, async (t) => {
    const fallthrough = scanFallthrough(dispenser(given))
    t.equal(fallthrough.through(transaction({ name: qname }).query), want)
  })
}

test('fallthrough: never, unless it was asked for', async (t) => {
  t.equal(NO_FALLTHROUGH.through(transaction({ name: 'a.example.' }).query), false)
})

test('zone arguments: without any, the zones of the block', async (t) => {
  const block = blockConfig(['example.org.', 'example.net.'])
  const zones = (args: string[]) => scanZoneArgsOrBlock(dispenser('x'), args, block).map(print)
  const print = (zone: Uint8Array) => printName(zone)
  t.same(zones([]), ['example.org.', 'example.net.'])
  t.same(zones(['Example.COM']), ['example.com.'])
})

test('zone arguments: a bad name is an error at its place', async (t) => {
  t.throws(() => scanZoneArgs(dispenser('x'), ['a..b']), {
    name: 'InputError',
    message: 'Corefile:1 - Error during parsing: zone is not a valid domain name: a..b',
  })
})
