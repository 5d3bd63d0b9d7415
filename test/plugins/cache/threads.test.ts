import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { serve } from '../../server/data/stage.ts'
import { A, AAAA, ask } from '../../support/query-cases.ts'
import { SpreadClient } from '../../support/transcript.ts'
import { until } from '../../support/until.ts'

const ZONE = `$TTL 60
@ IN SOA a b 1 2 3 4 5
@ IN NS a
a IN A 192.0.2.1
`
/** Far more than one thread's share of the ports. */
const ASKS = 40

t.test('data threads answer from the cache', async (t) => {
  const directory = t.testdir({})
  writeFileSync(join(directory, 'db'), ZONE)
  const corefile = `example.org:{PORT} {
    bind 127.0.0.1
    multisocket 2
    root ${directory}
    prometheus :1
    cache
    later
    file db
}
`
  const stage = await serve(t, 'batch', corefile)
  const client = await SpreadClient.open(t)
  const askMany = (name: string, type: number) => {
    const asks = Array.from({ length: ASKS }, () => ask(name, type))
    return client.askAll(
      asks,
      stage.port,
      asks.map(() => 60_000),
    )
  }
  for (const [name, type] of [
    ['a.example.org', A],
    ['none.example.org', A],
    ['a.example.org', AAAA],
  ] as const) {
    const [first] = await client.askAll([ask(name, type)], stage.port, [60_000])
    const later = await askMany(name, type)
    for (const replies of later) t.equal(replies.size, first!.size)
  }
  const countOf = async (text: string): Promise<number> => {
    const lines = (await stage.metrics()).split('\n').filter((line) => line.startsWith(text))
    return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }
  await until(
    async () => (await countOf('coredns_cache_requests_total')) >= 3 * (ASKS + 1),
    'all queries to be counted',
  )
  const requests = await countOf('coredns_cache_requests_total')
  const hits = await countOf('coredns_cache_hits_total')
  const misses = await countOf('coredns_cache_misses_total')
  t.equal(hits + misses, requests)
  // Each port has its own thread, and the client may ask both before the first answer is stored.
  t.ok(misses >= 3 && misses <= 3 * 4, `${misses} misses`)
  t.equal(stage.totals.panics, 0)
  await stage.stop()
})
