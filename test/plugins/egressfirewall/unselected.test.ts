import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { AddressRules } from '../../../src/egress/learned/address-rules.ts'
import { scanSelector } from '../../../src/egress/selectors/scan-selector.ts'
import { SelectorIndex } from '../../../src/egress/selectors/selector-index.ts'
import { NO_FALLTHROUGH } from '../../../src/plugin/arguments/fallthrough.ts'
import { CHAIN_END } from '../../../src/plugin/chain-end.ts'
import { CounterSlots } from '../../../src/plugin/counter-slots.ts'
import { EgressFirewall } from '../../../src/plugins/egressfirewall/egressfirewall.ts'
import { KuadrantHandler } from '../../../src/plugins/kuadrant/kuadrant.ts'
import { handingOver } from '../../../src/server/chain.ts'
import { ServerCounts } from '../../../src/server/counters.ts'
import { Server } from '../../../src/server/server.ts'
import { HAND_OVER } from '../../../src/transport/exchange.ts'
import { ZoneAnswerer } from '../../../src/zone/lookup/answer.ts'
import { FakeClock } from '../../support/setup.ts'
import { wireName, wireQuery } from '../../support/wire.ts'
import { imageOf } from '../../support/zone-lines.ts'

const AAAA = 28
const TXT = 16

t.test('a data thread hands over selected queries, and answers the others directly', async (t) => {
  const image = imageOf([
    'example.org. 30 SOA 90',
    'www.example.org. 60 A 192.0.2.1',
    'other.example.org. 60 A 192.0.2.2',
  ])
  const selectors = new SelectorIndex()
  const selector = scanSelector('www.example.org.', 'openshift')
  if (typeof selector === 'string') throw new Error(selector)
  selectors.set({ consumer: '', namespace: '', object: '' }, [selector])
  const source = { selectors, observer: undefined }
  const answerer = new ZoneAnswerer(image.reader())
  let isWhole = false
  class Bottom extends KuadrantHandler {
    override serve(tx: Parameters<KuadrantHandler['serve']>[0]): number | Promise<number> {
      isWhole = true
      return super.serve(tx)
    }
  }
  const bottom = new Bottom(CHAIN_END, { answerer }, NO_FALLTHROUGH)
  const parts = { name: 'egressfirewall', source, rules: new AddressRules([], []) }
  const clock = new FakeClock()
  const chain = handingOver((next) => {
    return new EgressFirewall(next, { ...parts, clock, slots: new CounterSlots() })
  }, true)(bottom)
  const log = createLogger(
    '',
    () => {},
    () => false,
  )
  const block = { zone: wireName(''), zoneText: '.', chain, filters: [], viewName: '' }
  const server = new Server({
    address: 'dns://:53',
    blocks: [{ ...block, bufsizeOctets: 1232, debug: false }],
    clock,
    random: new Random(1),
    log,
    counters: new ServerCounts(),
  })
  const tx = server.acquire()
  const ask = (name: string, type = 1): string => {
    isWhole = false
    tx.query.packet = wireQuery({ name, type })
    tx.query.packetOctets = tx.query.packet.length
    tx.query.packetAt = -1
    const octets = server.serve(tx, new Uint8Array(512))
    if (octets === HAND_OVER) return 'handed over'
    return isWhole ? 'answered by the chain' : 'answered directly'
  }
  for (const [name, type, want] of [
    ['other.example.org', 1, 'answered directly'],
    ['www.example.org', 1, 'handed over'],
    ['WWW.example.org', AAAA, 'handed over'],
    ['www.example.org', TXT, 'answered directly'],
    ['a.www.example.org', 1, 'answered directly'],
    ['example.org', 1, 'answered directly'],
  ] as const) {
    t.equal(ask(name, type), want, `${name} ${type}`)
  }
  // As below a handler that is not in the plan, such as dns64.
  t.equal(ask('other.example.org'), 'answered directly')
  t.equal(chain.serve(tx), 0)
  t.ok(isWhole, 'called without a plan')
})
