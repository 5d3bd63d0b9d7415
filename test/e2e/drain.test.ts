import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { composeQuery, UdpClient } from '../support/client.ts'
import { ask } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { readReply } from '../support/read-reply.ts'
import { type RunningServer, runSextant, startServer } from '../support/server.ts'
import { SlowStartShare } from '../support/slow-start-share.ts'
import { until } from '../support/until.ts'

// Long: it waits for drains of running servers.

const HOST = 'app.k.example.com'
const QUESTION = { name: HOST, type: 'A' }
const RAMP_UP_MS = 3000
/** A drain takes effect within a second; the limit is for a busy machine. */
const EFFECT_MS_MAX = 20_000
/** So many answers without an address show that it is not served: half of them would have it. */
const ANSWERS = 40

const COREFILE = `k.example.com:{PORT} {
    bind 127.0.0.1
    errors
    kuadrant {
        manifests records
        drain drains
        slow-start ${RAMP_UP_MS / 1000}s
    }
}
`
const endpoint = (last: number) => ({
  dnsName: HOST,
  recordType: 'A',
  setIdentifier: `site-${last}`,
  targets: [`192.0.2.${last}`],
  providerSpecific: [{ name: 'weight', value: '100' }],
})
const FILES = {
  'records/app.json': JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'app' },
    spec: { rootHost: HOST, endpoints: [endpoint(1), endpoint(2)] },
  }),
}

/** Returns the last octet of the address in an answer. */
async function askOnce(client: UdpClient): Promise<number> {
  const reply = readReply(await client.ask(QUESTION), composeQuery(QUESTION, 0))
  if (typeof reply === 'string') throw new Error(reply)
  return reply.addresses[0]?.[3] ?? 0
}

/** How many of `ANSWERS` answers have 192.0.2.1. */
async function countFirst({ port }: RunningServer): Promise<number> {
  const client = await UdpClient.connect(port)
  let count = 0
  for (let i = 0; i < ANSWERS; i++) if ((await askOnce(client)) === 1) count++
  client.close()
  return count
}

t.test('a drain by command, through restart, reload and takeover, to its end', async (t) => {
  const whole = t
  let server = await startServer(whole, { corefile: COREFILE, files: FILES })
  const run = async (...args: string[]) => {
    const got = await runSextant(server.directory, args)
    t.equal(got.code, 0, got.stderr)
    return got.stdout
  }
  t.not(await countFirst(server), 0)

  await t.test('the drain reaches clients', async (t) => {
    const stdout = await run('drain', 'id:site-1', '--until', '1h', '--reason', 'racks move')
    const startMs = performance.now()
    t.match(stdout, /^drained [0-9a-f]{8} id:site-1 by .+ until .+: racks move$/m)
    await until(async () => (await countFirst(server)) === 0, 'the drain')
    const tookMs = Math.round(performance.now() - startMs)
    t.comment(`${tookMs} ms after the command`)
    t.ok(tookMs < EFFECT_MS_MAX)
    await server.prints(/drain begins: id:site-1 by .+ until .+: racks move/)
  })

  await t.test('dig gets the other address', needs('dig'), async (t) => {
    const { answer } = await ask('dig', server.port, [HOST, 'A'])
    t.strictSame(answer, [`${HOST}. 60 IN A 192.0.2.2`])
  })

  await t.test('it survives a restart', async (t) => {
    server.process.kill('SIGTERM')
    await server.exited()
    server = await startServer(whole, { corefile: COREFILE, beside: server })
    t.equal(await countFirst(server), 0)
  })

  await t.test('it holds during a reload and a takeover', async (t) => {
    let drawn = 0
    server.process.kill('SIGUSR1')
    await until(async () => {
      drawn += await countFirst(server)
      return server.output().includes('Reloading complete')
    }, 'the reload')
    const old = server
    let hasEnded = false
    const taking = startServer(whole, {
      corefile: COREFILE,
      beside: old,
      args: ['-takeover'],
    })
    const ended = taking.then(async (next) => {
      server = next
      old.process.kill('SIGTERM')
      await old.exited()
      hasEnded = true
    })
    await until(async () => {
      drawn += await countFirst(old)
      return hasEnded
    }, 'the takeover')
    await ended
    drawn += await countFirst(server)
    t.equal(drawn, 0)
  })

  await t.test('its end brings the endpoint back step by step', async (t) => {
    await run('drain', 'id:site-1', '--until', '3s', '--reason', 'nearly done')
    const text = readFileSync(join(server.directory, 'drains'), 'utf8')
    const endMs = Date.parse(/^id:site-1 until=(\S+)/m.exec(text)![1]!)
    const client = await UdpClient.connect(server.port)
    t.teardown(() => client.close())
    const share = new SlowStartShare(RAMP_UP_MS)
    await server.prints(/drain ends: id:site-1 by .+: nearly done/)
    for (let elapsedMs = 0; elapsedMs < RAMP_UP_MS; ) {
      const isFirst = (await askOnce(client)) === 1
      elapsedMs = Date.now() - endMs
      if (elapsedMs < RAMP_UP_MS) share.note(isFirst, elapsedMs)
    }
    t.comment(String(share))
    t.ok(share.isWithinBound, String(share))
    await until(async () => (await countFirst(server)) > ANSWERS / 4, 'its full weight')
    t.equal(await run('drains'), 'nothing is drained\n')
  })
})
