import t from 'tap'
import { RRType } from '../../src/dns/iana/index.ts'
import { leastTtl, negativeTtl } from '../../src/peering/least-ttl.ts'
import { record } from '../support/exported-zone.ts'

t.test('the least TTL', (t) => {
  const table = [
    { name: 'of none there is none', of: [], want: undefined },
    { name: 'of one', of: [60], want: 60 },
    { name: 'of several', of: [300, 5, 60], want: 5 },
    { name: 'one with its top bit set is 0 (RFC 2181 section 8)', of: [60, 2 ** 31], want: 0 },
  ]
  for (const { name, of, want } of table) {
    t.equal(leastTtl(of.map((ttlSeconds) => ({ ttlSeconds }))), want, name)
  }
  t.end()
})

t.test('the TTL of a negative answer (RFC 2308 section 5)', (t) => {
  const soa = (minimum: number, ttlSeconds: number) => ({
    ...record('kdrnt.', 'SOA', `ns1.kdrnt. hostmaster.kdrnt. 1 7200 1800 86400 ${minimum}`),
    ttlSeconds,
  })
  const ns = record('kdrnt.', 'NS', 'ns1.kdrnt.')
  const short = { ...ns, type: RRType.SOA }
  const table = [
    { name: 'without an SOA', of: [ns], want: undefined },
    { name: 'the minimum', of: [ns, soa(30, 3600)], want: 30 },
    { name: 'its TTL where that is less', of: [soa(3600, 20)], want: 20 },
    {
      name: 'an SOA that is too short to be one',
      of: [{ ...short, rdata: new Uint8Array(21) }],
      want: undefined,
    },
    { name: 'a minimum beyond all bounds', of: [soa(2 ** 32 - 1, 60)], want: 0 },
  ]
  for (const { name, of, want } of table) t.equal(negativeTtl(of), want, name)
  t.end()
})
