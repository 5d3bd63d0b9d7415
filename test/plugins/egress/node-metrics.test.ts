import t from 'tap'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import { exportNode } from '../../../src/plugins/egress/node-metrics.ts'
import { answerTo, clientOf } from '../../support/egress-client.ts'
import { EgressStage } from '../../support/egress-stage.ts'

const RULES = [{ names: '*.example.com', lasts: 'connections' }, { names: 'x.example' }] as const
const [WEB, DB] = [clientOf('a/web/1', '10.1.0.1', RULES), clientOf('a/db/2', '10.1.0.2', RULES)]

/** An agent with two clients; the first one has learned two addresses of a name. */
async function learned(): Promise<EgressStage> {
  const stage = new EgressStage()
  await stage.agent.setClients([WEB, DB])
  stage.agent.learn(WEB, answerTo('www.example.com.', '192.0.2.1 192.0.2.2 10.96.0.1', 600))
  stage.agent.learn(WEB, answerTo('other.example.', '192.0.2.3', 600))
  return stage
}

/** The values of the series that begin so, without their prefix `sextant_`. */
async function read(metrics: MetricsRegistry, beginning: string) {
  const lines = (await metrics.print()).split('\n')
  const found = lines.filter((line) => line.startsWith(`sextant_${beginning}`))
  return found.map((line) => line.slice('sextant_'.length)).sort()
}

const NUMBERS = { transactions: 1, failures: 2, elements: 3, resyncs: 4, repaired: 5, refused: 6 }

t.test('the numbers of an agent', async (t) => {
  const metrics = new MetricsRegistry()
  const { agent } = await learned()
  const enforcerNumbers = { ...NUMBERS }
  const stop = exportNode(metrics, {
    agent,
    enforcerNumbers: () => enforcerNumbers,
    countsEndpoints: false,
  })
  for (let scrape = 0; scrape < 2; scrape++) {
    t.strictSame(await read(metrics, ''), [
      'egress_answers_total 2',
      'egress_clients 2',
      'egress_conntrack_dumps_total 0',
      'egress_conntrack_failed_dumps_total 0',
      'egress_denied_answer_addresses_total 1',
      'egress_grants 2',
      'egress_nft_elements_total 3',
      'egress_nft_failures_total 2',
      'egress_nft_refused_total 6',
      'egress_nft_repaired_total 5',
      'egress_nft_resyncs_total 4',
      'egress_nft_transactions_total 1',
      'egress_rule_sets 1',
      'egress_waits_total 0',
      'egress_zombie_evictions_total 0',
      'fqdn_active_ips 3',
      'fqdn_active_names 2',
      'fqdn_alive_zombie_connections 0',
      'fqdn_gc_deletions_total 0',
      'fqdn_selectors 2',
    ])
  }
  enforcerNumbers.elements = 10
  stop()
  t.strictSame(await read(metrics, 'egress_clients'), ['egress_clients 0'])
  const [elements] = await read(metrics, 'egress_nft_elements_total')
  t.equal(elements, 'egress_nft_elements_total 10', 'what came after the last scrape counts')
})

t.test('a dry run has no numbers of nftables', async (t) => {
  const metrics = new MetricsRegistry()
  const { agent } = await learned()
  exportNode(metrics, { agent, enforcerNumbers: undefined, countsEndpoints: false })
  t.strictSame(await read(metrics, 'egress_nft'), [])
})

t.test('the label endpoint', async (t) => {
  const metrics = new MetricsRegistry()
  const { agent } = await learned()
  exportNode(metrics, { agent, enforcerNumbers: undefined, countsEndpoints: true })
  const grants = (id: string, count: number) => `egress_grants{endpoint="${id}"} ${count}`
  t.strictSame(await read(metrics, 'egress_grants'), [grants('a/db/2', 0), grants('a/web/1', 2)])
  await agent.setClients([WEB])
  t.strictSame(
    await read(metrics, 'egress_grants'),
    [grants('a/web/1', 2)],
    'a client that is gone',
  )
})

t.test('two agents during a reload', async (t) => {
  for (const countsEndpoints of [false, true]) {
    const metrics = new MetricsRegistry()
    const [old, next] = [await learned(), await learned()]
    const parts = { enforcerNumbers: () => NUMBERS, countsEndpoints }
    const stop = exportNode(metrics, { agent: old.agent, ...parts })
    await metrics.print()
    exportNode(metrics, { agent: next.agent, ...parts })
    await metrics.print()
    stop()
    const labels = countsEndpoints ? '{endpoint="a/web/1"}' : ''
    t.ok((await read(metrics, 'egress_grants')).includes(`egress_grants${labels} 2`))
    t.strictSame(await read(metrics, 'egress_clients'), ['egress_clients 2'])
    t.strictSame(await read(metrics, 'egress_answers_total'), ['egress_answers_total 4'])
  }
})

t.test('a reload that begins or ends to use the label', async (t) => {
  for (const countsEndpoints of [false, true]) {
    const metrics = new MetricsRegistry()
    const { agent } = await learned()
    const stop = exportNode(metrics, { agent, enforcerNumbers: undefined, countsEndpoints })
    await metrics.print()
    const next = { agent, enforcerNumbers: undefined, countsEndpoints: !countsEndpoints }
    exportNode(metrics, next)
    await metrics.print()
    stop()
    const grants = await read(metrics, 'egress_grants')
    const labelled = 'egress_grants{endpoint="a/web/1"} 2'
    t.ok(grants.includes(countsEndpoints ? 'egress_grants 2' : labelled), grants.join())
  }
})
