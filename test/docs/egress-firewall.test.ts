import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { systemClock } from '../../src/base/clock.ts'
import { RRClass, RRType } from '../../src/dns/iana/index.ts'
import type { ResourceRecord } from '../../src/dns/message/message.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { resolverObjectName } from '../../src/egress/policies/openshift/object-name.ts'
import { serve } from '../server/data/stage.ts'
import { UdpClient } from '../support/client.ts'
import { ObjectApi, serveObjectApi } from '../support/object-api.ts'
import { scanFences } from '../support/page.ts'
import { ScriptedServer } from '../support/scripted-server.ts'
import { root } from '../support/server.ts'

// Long: it runs all commands of a page.

const PAGE = 'docs/how-to/egress-firewall.md'
const RESOLVERS = 'dnsnameresolvers'
const NOW = Date.parse('2026-01-01T00:00:00Z')

t.test(`${PAGE}: the answer leads to the status that it shows`, async (t) => {
  const page = readFileSync(join(root, PAGE), 'utf8')
  const fences = scanFences(page)
  const textOf = (name: string): string => fences.find(({ file }) => file === name)!.text
  const { metadata, spec } = parse(textOf('dnsnameresolver.yaml'))
  const [first] = parse(textOf('egressfirewall.yaml')).spec.egress
  t.equal(`${first.to.dnsName}.`, spec.name)
  t.equal(metadata.name, resolverObjectName(spec.name))

  const answer = [...page.matchAll(/^(\S+) {2}(\d+) {2}IN {2}(\w+) +(\S+)$/gm)].map(
    ([, owner = '', ttl = '', type = '', data = '']): ResourceRecord => ({
      owner: scanName(owner)!,
      type: type === 'A' ? RRType.A : RRType.CNAME,
      rrclass: RRClass.IN,
      ttlSeconds: Number(ttl),
      rdata: type === 'A' ? scanAddress(data)!.bytes : scanName(data)!,
    }),
  )
  t.equal(answer.length, 2)
  const upstream = await ScriptedServer.open(t, () => answer)
  const api = new ObjectApi()
  api.put(RESOLVERS, metadata.namespace, metadata.name, { spec })
  const corefile = textOf('Corefile')
    .replace('.:53 {', '.:{PORT} {\n    bind 127.0.0.1')
    .replace('gate 50ms', `gate 5s\n        endpoint ${await serveObjectApi(t, api)}`)
    .replace('/etc/resolv.conf', `127.0.0.1:${upstream.port}`)
  const clock = { ...systemClock, now: () => NOW }
  const { port } = await serve(t, 'dgram', corefile, undefined, clock)
  const client = await UdpClient.connect(port)
  t.teardown(() => client.close())
  await client.ask({ name: spec.name, type: 'A' })
  const { status } = api.read(RESOLVERS, metadata.namespace, metadata.name)
  t.strictSame(status, parse(textOf('status.yaml')).status)
})
