import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { isSerialAfter } from '../../src/publish/zone/soa.ts'
import { UdpClient } from '../support/client.ts'
import { getText } from '../support/get-text.ts'
import { freePort, layFiles, putFile, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

// Long: it starts many servers, one after the other.

/** Two places, so that the data threads need the steering table too; the tests are in Europe. */
function corefile(directory: string, readyPort: number, properties: string): string {
  return `k.example.com:{PORT} {
    bind 127.0.0.1
    errors
    ready 127.0.0.1:${readyPort}
    geoip {
        net 127.0.0.0/8 GEO-EU
    }
    kuadrant {
        manifests ${directory}/zones
        snapshot ${directory}/snapshot 1s
        ${properties}
    }
}
`
}

function manifest(last: number): string {
  const endpoint = (code: string, address: string): string => `  - dnsName: www.k.example.com
    recordType: A
    setIdentifier: ${code}
    providerSpecific:
    - name: geo-code
      value: ${code}
    targets: [${address}]
`
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: www
spec:
  rootHost: www.k.example.com
  endpoints:
${endpoint('GEO-EU', `192.0.2.${last}`)}${endpoint('GEO-NA', '198.51.100.1')}`
}

interface Life {
  readonly serials: readonly number[]
  readonly ready: string
}

/** Lives of a server over one directory; each life notes every serial that it sees. */
async function lives(t: Test, properties: string): Promise<void> {
  const directory = temporaryDirectory(t)
  layFiles(directory, { 'zones/a.yaml': manifest(1) })
  const snapshot = join(directory, 'snapshot')
  const edit = (last: number) => putFile(directory, 'zones/a.yaml', manifest(last))
  const readyPort = await freePort()
  const text = corefile(directory, readyPort, properties.replace('{DIR}', directory))
  const run = async (
    signal: NodeJS.Signals,
    live: (ask: () => Promise<string>) => Promise<void>,
  ): Promise<Life> => {
    const serials: number[] = []
    let ready = ''
    const life = async (t: Test): Promise<void> => {
      const server = await startServer(t, { corefile: text })
      const client = await UdpClient.connect(server.port)
      t.teardown(() => client.close())
      const look = async (): Promise<string> => {
        const soa = await client.ask({ name: 'k.example.com', type: 'SOA' })
        serials.push(serialOf(soa))
        const reply = await client.ask({ name: 'www.k.example.com', type: 'A' })
        return addressOf(reply)
      }
      ready = (await getText(`http://127.0.0.1:${readyPort}/ready`)).text
      await live(look)
      server.process.kill(signal)
      await server.exited()
    }
    await t.test(`a life that ends with ${signal}`, life)
    return { serials, ready }
  }
  const serves = (look: () => Promise<string>, last: number) =>
    until(async () => (await look()) === `192.0.2.${last}`, `address ${last}`)

  const first = await run('SIGKILL', async (look) => {
    await serves(look, 1)
    await until(() => existsSync(snapshot), 'the snapshot')
    const { mtimeMs } = statSync(snapshot)
    for (const last of [2, 3, 4]) {
      edit(last)
      await serves(look, last)
    }
    // Killed with a snapshot that is behind, or just after: both are fine.
    t.ok(statSync(snapshot).mtimeMs >= mtimeMs)
  })
  t.match(first.ready, /^OK/)
  edit(5)
  const second = await run('SIGTERM', async (look) => {
    const early = await look()
    t.match(early, /^192\.0\.2\.[1-5]$/, 'answered for Europe from the first query on')
    await serves(look, 5)
  })
  const third = await run('SIGTERM', (look) => serves(look, 5))
  const all = [...first.serials, ...second.serials, ...third.serials]
  const back = all.findIndex((serial, i) => i > 0 && isSerialAfter(all[i - 1]!, serial))
  t.equal(back, -1, `no serial goes back: ${all.join(' ')}`)
  t.match(third.ready, /^OK/)
}

/** The serial is in front of the four timers, refresh first. */
function serialOf(reply: Buffer): number {
  const refresh = reply.indexOf(Buffer.from([0, 0, 7200 >> 8, 7200 & 255]))
  return reply.readUInt32BE(refresh - 4)
}

/** Of a reply with one A record; '' where there is none. */
function addressOf(reply: Buffer): string {
  const at = reply.indexOf(Buffer.from([0, 4, 192, 0, 2]))
  return at < 0 ? '' : [...reply.subarray(at + 2, at + 6)].join('.')
}

t.test('over kills and restarts, with a serials file', (t) => lives(t, 'serials {DIR}/serials'))
t.test('over kills and restarts, without one', (t) => lives(t, ''))
