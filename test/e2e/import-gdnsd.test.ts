import t, { type Test } from 'tap'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { printBlockYaml } from '../../src/yaml/print-block-yaml.ts'
import { formatOf, importFiles } from '../imports/import-files.ts'
import { UdpClient } from '../support/client.ts'
import { startGdnsd } from '../support/gdnsd.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'

// Long: it starts gdnsd and Sextant, and sends thousands of queries.

/** Enough to see both of two answers, except once in 10^9 times. */
const DRAWS = 32
const CLIENTS = ['198.51.100.0/24', '203.0.113.0/25', '203.0.113.128/25', '192.0.2.0/24']

const CONFIG = `options => { listen => 127.0.0.1:{PORT}, run_dir => {DIR}/run, state_dir => {DIR}/state, edns_client_subnet => true }
plugins => {
  weighted => {
    cdn => { one => { a => [192.0.2.11, 2], b => [192.0.2.12, 2] }, two => { c => [192.0.2.13, 2], d => [192.0.2.14, 2] } }
    mixed => { addrs_v4 => { a = [192.0.2.15, 2], b = [192.0.2.16, 3] }, addrs_v6 => { multi => true, a = [2001:db8::15, 4], b = [2001:db8::16, 4] } }
    alias => { a => [a.example.net., 5], b => [b.example.net., 5] }
  }
  multifo => { pub => { addrs_v4 => [192.0.2.22, 192.0.2.23], addrs_v6 => { a => 2001:db8::22 } } }
  simplefo => { pair => { primary => 192.0.2.30, secondary => 192.0.2.31 } }
  metafo => { resources => { prod => { datacenters => [a, b, c], dcmap => { a => 192.0.2.40, b => { x => 192.0.2.41, y => 192.0.2.42 }, c => %weighted!cdn } } } }
  geoip => {
    maps => {
      main => { datacenters => [east, west, spare], nets => { 198.51.100.0/24 => [west, east], 203.0.113.0/24 => [spare, east], 203.0.113.128/25 => west } }
      other => { datacenters => [east, west], nets => { 203.0.113.0/25 => [west, east] } }
    }
    resources => {
      www => { map => main, dcmap => { east => 192.0.2.50, west => { a => 192.0.2.51, b => 192.0.2.52 }, spare => { plugin => simplefo, primary => 192.0.2.53, secondary => 192.0.2.54 } } }
      second => { map => main, skip_first => true, dcmap => { east => 192.0.2.55, west => 192.0.2.56, spare => 192.0.2.57 } }
      draw => { map => main, plugin => weighted, dcmap => { east => { a => [192.0.2.61, 1] }, west => { a => [192.0.2.62, 1], b => [192.0.2.63, 1] }, spare => { a => [192.0.2.64, 1] } } }
      other => { map => other, dcmap => { east => 192.0.2.71, west => 192.0.2.72 } }
      names => { map => other, dcmap => { east => e.example.net., west => w.example.net. } }
    }
  }
}
`
const NAMES = new Map([
  ['cdn', 'DYNA weighted!cdn'],
  ['mixed', 'DYNA weighted!mixed'],
  ['alias', 'DYNC weighted!alias'],
  ['pub', 'DYNA multifo!pub'],
  ['pair', 'DYNA simplefo!pair'],
  ['prod', 'DYNA metafo!prod'],
  ['prod-b', 'DYNA metafo!prod/b'],
  ['www', 'DYNA geoip!www'],
  ['second', 'DYNA geoip!second'],
  ['draw', 'DYNA geoip!draw'],
  ['other', 'DYNA geoip!other'],
  ['names', 'DYNC geoip!names'],
  ['plain', 'A 192.0.2.80'],
])
const ZONE = `$TTL 60
@ SOA ns1 hostmaster 1 7200 1800 259200 900
@ NS ns1
ns1 A 127.0.0.1
${[...NAMES].map(([name, data]) => `${name} 60 ${data}\n`).join('')}`

/** Starts Sextant with the imported records, and with the lines `net` that the import lists. */
async function startSextant(t: Test): Promise<number> {
  const config = CONFIG.replaceAll('{PORT}', '53').replaceAll('{DIR}', '/run/gdnsd')
  const files = { config, 'k.example.com': ZONE }
  const { documents, notes } = importFiles(formatOf('gdnsd'), files)
  const nets = notes.flatMap((note) => /to the directive geoip: (.*)$/.exec(note)?.[1] ?? [])
  t.strictSame(
    notes.filter(
      (note) => !note.includes('geoip: net') && !/(?:SOA|NS) of k\.example\.com/.test(note),
    ),
    [
      'k.example.com:10: prod.k.example.com: NET-FALLBACK-C is only for failover lists: no client has this geo code, and sextant check warns of it',
    ],
  )
  const records = documents.map((one) => `---\n${printBlockYaml(one).join('\n')}\n`).join('')
  const corefile = `k.example.com:{PORT} {
    bind 127.0.0.1
    geoip {
        edns-subnet
        ${nets.join('\n        ')}
    }
    kuadrant {
        manifests records
        nameserver ns1.k.example.com 127.0.0.1
    }
}
`
  return (await startServer(t, { corefile, files: { 'records/imported.yaml': records } })).port
}

async function answersOf(t: Test, port: number): Promise<string[]> {
  const client = await UdpClient.connect(port)
  t.teardown(() => client.close())
  const lines: string[] = []
  for (const name of NAMES.keys()) {
    for (const subnet of CLIENTS) {
      for (const type of ['A', 'AAAA']) {
        const ask = async (): Promise<string> => {
          const octets = await client.ask({ name: `${name}.k.example.com`, type, subnet })
          const records = parseMessage(octets)!.answer.map((record) => {
            return `${record.ttlSeconds} ${printRdata(record.type, record.rdata)}`
          })
          return records.sort().join(' ') || '-'
        }
        const answers = new Set(await Promise.all(Array.from({ length: DRAWS }, ask)))
        lines.push(`${name} ${type} ${subnet}: ${[...answers].sort().join(' | ')}`)
      }
    }
  }
  return lines
}

t.test('imported records answer as gdnsd does', needs('gdnsd'), async (t) => {
  const [ours, theirs] = [
    await startSextant(t),
    await startGdnsd(t, { config: CONFIG, zone: ZONE }),
  ]
  t.strictSame(await answersOf(t, ours), await answersOf(t, theirs))
})
