import t from 'tap'
import { parseQuery } from '../../src/dns/message/parse-query.ts'
import { Query } from '../../src/dns/message/query.ts'
import { planChain } from '../../src/server/chain-plan.ts'
import { RoutingTable } from '../../src/server/routing.ts'
import { ZoneMemo } from '../../src/server/zone-memo.ts'
import { ZoneAnswerer } from '../../src/zone/lookup/answer.ts'
import type { AnswerSource } from '../../src/zone/lookup/answer-source.ts'
import { wireQuery } from '../support/wire.ts'
import { imageOf } from '../support/zone-lines.ts'
import { kuadrant } from './chain-plan-stage.ts'
import { block } from './server-fixture.ts'

function stage(lines: readonly string[], zones: readonly string[]) {
  const image = imageOf(lines)
  const chain = kuadrant(new ZoneAnswerer(image.reader()))
  const source: AnswerSource = planChain(chain).source!
  let searches = 0
  // The memo searches the source only after it has searched the routing table.
  const counted: AnswerSource = {
    name: source.name,
    denies: source.denies,
    get holder() {
      return source.holder
    },
    deepestAround: (name) => source.deepestAround(name),
    find: (name) => {
      searches++
      return source.find(name)
    },
  }
  const plan = { ...planChain(chain), source: counted }
  const memo = new ZoneMemo(
    new RoutingTable(zones.map((zone) => ({ ...block(zone), chain, plan }))),
  )
  /** The zone that the memo finds, and whether it had to search. */
  const find = (name: string): string => {
    const query = new Query()
    const packet = wireQuery({ name, type: 1 })
    t.equal(parseQuery(query, packet, packet.length), 0)
    const before = searches
    if (!memo.find(query)) return 'none'
    const apex = name.split('.').slice(memo.zoneLabel).join('.')
    return `${apex} ${searches === before ? 'known' : 'searched'}`
  }
  return { image, find }
}

const soa = (zone: string): string => `${zone}. 30 SOA 90`

t.test('a longer zone elsewhere in the image does not cost a search', async (t) => {
  const zones = ['plain.example', 'k.example.com']
  const { find } = stage(zones.map(soa), zones)
  const names = ['a.plain.example', 'b.plain.example', 'plain.example', 'x.y.plain.example']
  t.strictSame(names.map(find), [
    'plain.example searched',
    'plain.example known',
    'plain.example known',
    'plain.example known',
  ])
  t.strictSame(['a.k.example.com', 'b.k.example.com', 'a.plain.example'].map(find), [
    'k.example.com searched',
    'k.example.com known',
    'plain.example searched',
  ])
})

t.test('a zone below, in the same image', async (t) => {
  const { find } = stage(['plain.example', 'deep.plain.example'].map(soa), ['plain.example'])
  const names = [
    'a.plain.example',
    'b.plain.example',
    'a.deep.plain.example',
    'b.deep.plain.example',
  ]
  t.strictSame(names.map(find), [
    'plain.example searched',
    'plain.example known',
    'deep.plain.example searched',
    'deep.plain.example known',
  ])
  t.strictSame(['a.plain.example', 'deep.plain.example'].map(find), [
    'plain.example searched',
    'deep.plain.example searched',
  ])
})

t.test('a zone below, in another block', async (t) => {
  const zones = ['plain.example', 'deep.plain.example']
  const { find } = stage(zones.map(soa), zones)
  t.strictSame(['a.plain.example', 'b.plain.example', 'a.deep.plain.example'].map(find), [
    'plain.example searched',
    'plain.example searched',
    'deep.plain.example searched',
  ])
})
