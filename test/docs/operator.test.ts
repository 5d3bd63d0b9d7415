import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { systemClock } from '../../src/base/clock.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { systemTimers } from '../../src/base/timers.ts'
import { readProvider } from '../../src/operator/provider/provider-secret.ts'
import { PeerFollower } from '../../src/peering/peer.ts'
import { secret } from '../support/operator-objects.ts'
import { type Fence, scanFences } from '../support/page.ts'
import { root, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const PAGE = 'docs/reference/operator.md'
const MANIFEST = `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: app
spec:
  rootHost: app.k.example.com
  endpoints:
  - dnsName: app.k.example.com
    recordType: A
    recordTTL: 60
    targets: [192.0.2.1]
`

/** The first of that language on the page. */
function fenceOf(fences: readonly Fence[], language: string): string {
  const fence = fences.find((one) => one.language === language)
  if (fence === undefined) throw new Error(`${PAGE} has no block of ${language}`)
  return fence.text
}

t.test(
  'an operator with the Secret of the page follows a nameserver with its Corefile',
  async (t) => {
    const fences = scanFences(readFileSync(join(root, PAGE), 'utf8'))
    const page: { readonly stringData: Readonly<Record<string, string>> } = parse(
      fenceOf(fences, 'yaml'),
    )
    const provider = readProvider(secret('gateways', 'coredns', page.stringData))
    if (typeof provider === 'string') throw new Error(provider)
    t.not(provider.tsigKey, undefined, 'the Secret has a key')
    // Records out of files in the place of a cluster's.
    const server = await startServer(t, {
      corefile: fenceOf(fences, 'corefile')
        .replace(/^kdrnt /, 'kdrnt:{PORT} ')
        .replace(/^ {4}kuadrant$/m, '    kuadrant {\n        manifests zones\n    }'),
      files: { 'zones/app.yaml': MANIFEST },
      env: page.stringData,
    })
    const table = [
      { name: 'with the key it has the zone', key: provider.tsigKey, want: 'v2' },
      { name: 'without, it asks for each host', key: undefined, want: 'v1' },
    ]
    for (const { name, key, want } of table) {
      const lines: string[] = []
      const sink = (line: string) => lines.push(line)
      const follower = new PeerFollower({
        peer: { host: '127.0.0.1', port: server.port },
        key,
        clock: systemClock,
        timers: systemTimers,
        log: createLogger('', sink, () => false),
        random: () => 0,
      })
      t.teardown(() => follower.close())
      follower.start()
      await until(() => follower.generation !== '', 'the peer').catch((error: Error) => {
        throw new Error(`${error.message}: ${lines.join('; ')}\n${server.output()}`)
      })
      t.equal(follower.generation, want, name)
    }
  },
)
