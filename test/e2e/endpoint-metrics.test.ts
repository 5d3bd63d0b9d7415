import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { UdpClient } from '../support/client.ts'
import { askEach } from '../support/dig.ts'
import { getText } from '../support/get-text.ts'
import { needs } from '../support/peer.ts'
import { freePort, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const CLIENTS = 12
const ASKS = 25
const APP = 'app.k.example.com'
/** Targets of the endpoints, which name them. */
const DUBLIN = '192.0.2.1'
const TOKYO = '192.0.2.2'

const corefile = (port: number | string, metrics: number, max = ''): string => `
k.example.com:${port} {
    bind 127.0.0.1
    multisocket 3
    prometheus 127.0.0.1:${metrics}
    geoip {
        edns-subnet
        net 198.51.100.0/24 IE
    }
    kuadrant {
        manifests records
        snapshot zones.snapshot 1s
        explain 127.0.0.0/8
        endpoint-metrics ${max}
    }
}
`

const manifest = (name: string): string =>
  JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: name.split('.')[0], namespace: 'tests' },
    spec: {
      rootHost: name,
      endpoints: [
        [DUBLIN, '3', 'IE'],
        [TOKYO, '1', 'IE'],
        [TOKYO, '1', '*'],
      ].map(([target, weight, code]) => ({
        dnsName: name,
        recordType: 'A',
        setIdentifier: `${target} "${code}"`,
        targets: [target],
        providerSpecific: [
          { name: 'geo-code', value: code },
          { name: 'weight', value: weight },
        ],
      })),
    },
  })

const LABEL = /([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"/gy

/** Reads a page as the format 0.0.4 defines it, and returns the samples of one metric. */
function samples(t: Test, page: string, metric: string): Map<string, number> {
  const found = new Map<string, number>()
  for (const line of page.split('\n')) {
    if (line === '' || /^# (HELP|TYPE) [a-zA-Z_:]+ /.test(line)) continue
    const [, name, , labels = '', value = ''] =
      /^([a-zA-Z_:][\w:]*)(\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (name === undefined) throw new Error(`not a sample: ${line}`)
    if (name !== metric) continue
    const pairs = new Map<string, string>()
    LABEL.lastIndex = 0
    for (let at = 0; at < labels.length; at = LABEL.lastIndex) {
      const [, label, text] = LABEL.exec(labels) ?? []
      if (label === undefined || text === undefined) throw new Error(`not labels: ${labels}`)
      pairs.set(
        label,
        text.replace(/\\(.)/g, (_: string, one: string) => (one === 'n' ? '\n' : one)),
      )
      if (labels[LABEL.lastIndex] === ',') LABEL.lastIndex++
    }
    const key = [pairs.get('owner'), pairs.get('endpoint'), pairs.get('tier')].join(' ').trim()
    t.notOk(found.has(key), `one series: ${key}`)
    found.set(key, Number(value))
  }
  return found
}

t.test(
  'the counters are those of the answers, over reloads and restarts',
  needs('dig'),
  async (t) => {
    const metrics = await freePort()
    const options = {
      corefile: corefile('{PORT}', metrics),
      files: { 'records/app.json': manifest(APP) },
    }
    const server = await startServer(t, options)
    const clients = await Promise.all(
      Array.from({ length: CLIENTS }, () => UdpClient.connect(server.port)),
    )
    t.teardown(() => {
      for (const client of clients) client.close()
    })
    const got = new Map<string, number>()
    const note = (subnet: string, target: string): void => {
      const key = `${APP}. ${target} "${subnet === '' ? '*' : 'IE'}" ${subnet === '' ? '*' : 'IE'}`
      got.set(key, (got.get(key) ?? 0) + 1)
    }
    const ask = async (client: UdpClient, subnet: string): Promise<void> => {
      const question = { name: APP, type: 'A', ...(subnet === '' ? {} : { subnet }) }
      // A repetition would be counted as well.
      const message = parseMessage(await client.ask(question, 1, 60_000))
      for (const { type, rdata } of message!.answer) note(subnet, printRdata(type, rdata))
    }
    const askAll = async (): Promise<void> => {
      for (let i = 0; i < ASKS; i++) {
        const subnet = i % 5 === 0 ? '' : '198.51.100.0/24'
        await Promise.all(clients.map((client) => ask(client, subnet)))
      }
      // TCP is answered by another thread.
      const replies = await askEach(
        server.port,
        ['+tcp'],
        [
          [APP, 'A'],
          [APP, 'A'],
        ],
      )
      for (const { answer } of replies) note('', answer[0]!.split(' ').at(-1)!)
    }
    const read = async (metric = 'answers_total'): Promise<Map<string, number>> => {
      const { text } = await getText(`http://127.0.0.1:${metrics}/metrics`)
      return samples(t, text, `sextant_kuadrant_endpoint_${metric}`)
    }
    const isAsAnswered = async (what: string): Promise<void> => {
      const { other = 0, ...counted } = Object.fromEntries(await read())
      t.strictSame(counted, Object.fromEntries(got), what)
      t.equal(other, 0)
    }
    await askAll()
    await isAsAnswered('after a start')
    t.strictSame(
      new Set((await read('share')).values()),
      new Set([0.75, 0.25, 1]),
      'the configured shares',
    )

    // A server explains its answers shortly after its start.
    await until(async () => {
      const [explained] = await askEach(server.port, ['+tcp'], [[`_explain.${APP}`, 'TXT']])
      return /192\.0\.2\./.test(explained!.text)
    }, 'an explanation')
    await isAsAnswered('an explanation does not count')

    writeFileSync(join(server.directory, 'Corefile'), corefile(server.port, metrics, '100'))
    server.process.kill('SIGUSR1')
    await server.prints(/Reloading complete/)
    await askAll()
    await isAsAnswered('after a reload')

    server.process.kill('SIGTERM')
    await server.exited()
    got.clear()
    const next = await startServer(t, {
      corefile: corefile(server.port, metrics),
      beside: server,
    })
    await next.prints(/zone k\.example\.com\.: 1 record,/)
    await askAll()
    await isAsAnswered('after a restart with a snapshot')
  },
)
