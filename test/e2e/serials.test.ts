import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { UdpClient } from '../support/client.ts'
import { recordManifest } from '../support/manifest.ts'
import { layFiles, putFile, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

// Long: it restarts servers many times.

const ZONES = ['example.com', 'k.example.com', 'kdrnt']

/** Two zones of which one is inside the other, and the gateway-local form: what moves most. */
function corefile(directory: string): string {
  const block = (zone: string) => `${zone}:{PORT} {
    bind 127.0.0.1
    errors
    kuadrant {
        manifests ${directory}/zones
        serials ${directory}/serials
    }
}
`
  return ZONES.map(block).join('')
}

const content = (last: number): string =>
  recordManifest('outer', '192.0.2.1', 'www.example.com') +
  recordManifest('inner', `192.0.2.${last}`, 'www.k.example.com')

t.test('serials over restarts and crashes', async (t) => {
  const directory = temporaryDirectory(t)
  layFiles(directory, { 'zones/a.yaml': content(1) })
  const edit = (last: number) => putFile(directory, 'zones/a.yaml', content(last))

  /** One life of a server: `live` asks for the serials of all zones, and may wait for an edit. */
  const run = (name: string, signal: NodeJS.Signals, live: (ask: Ask) => Promise<number[]>) => {
    let serials: number[] = []
    const life = async (t: Test): Promise<void> => {
      const server = await startServer(t, { corefile: corefile(directory) })
      const client = await UdpClient.connect(server.port)
      t.teardown(() => client.close())
      serials = await live((name, type) => client.ask({ name, type }))
      server.process.kill(signal)
      await server.exited()
    }
    return t.test(name, life).then(() => serials)
  }
  const first = await run('started', 'SIGTERM', serialsOf)
  const same = await run('restarted with the same content', 'SIGTERM', serialsOf)
  t.strictSame(same, first)
  const edited = await run('edited, then killed', 'SIGKILL', async (ask) => {
    edit(2)
    // Each block publishes for itself.
    for (const name of ['www.k.example.com', 'www.k.example.com.kdrnt']) {
      await until(async () => (await ask(name, 'A')).includes(address(2)), `the edit of ${name}`)
    }
    await until(() => read(directory).startsWith('sextant serials 1 clean\n'), 'the exact serials')
    return serialsOf(ask)
  })
  t.strictSame(edited, [first[0], first[1]! + 1, first[2]! + 1])
  t.strictSame(await run('restarted after the kill', 'SIGTERM', serialsOf), edited)
  edit(3)
  const later = await run('edited while it was down', 'SIGTERM', serialsOf)
  t.strictSame(later, [edited[0], edited[1]! + 1, edited[2]! + 1])
  const killed = await run('edited, then killed at once', 'SIGKILL', async (ask) => {
    edit(4)
    const name = 'www.k.example.com'
    await until(async () => (await ask(name, 'A')).includes(address(4)), 'the edit')
    return serialsOf(ask)
  })
  t.equal(killed[1], later[1]! + 1)
  const last = await run('restarted after that kill', 'SIGTERM', serialsOf)
  for (const [i, serial] of last.entries()) t.ok(serial >= killed[i]!, `${serial} >= ${killed[i]}`)
})

const read = (directory: string): string => readFileSync(`${directory}/serials`, 'utf8')

type Ask = (name: string, type: string) => Promise<Buffer>

const address = (last: number): Buffer => Buffer.from([192, 0, 2, last])

async function serialsOf(ask: Ask): Promise<number[]> {
  const serials: number[] = []
  for (const zone of ZONES) {
    const reply = await ask(zone, 'SOA')
    // The serial is in front of the four timers, refresh first.
    const refresh = reply.indexOf(Buffer.from([0, 0, 7200 >> 8, 7200 & 255]))
    serials.push(reply.readUInt32BE(refresh - 4))
  }
  return serials
}
