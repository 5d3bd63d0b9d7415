import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import t, { type Test } from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { lowerName, printName } from '../../../src/dns/name/name.ts'
import { scanAddress } from '../../../src/dns/text/address.ts'
import { forward } from '../../../src/plugins/forward/setup.ts'
import { selfSigned } from '../../support/certificate.ts'
import { replyTo, ScriptedServer } from '../../support/scripted-server.ts'
import { SetUp } from '../../support/setup.ts'
import { show, transaction } from '../../support/transaction.ts'
import { ADDRESS, started, WWW } from './stage.ts'

/** The addresses of the host names that the resolver of the test knows. */
const HOSTS: { readonly [name: string]: readonly string[] } = {
  'up.example.': ['127.0.0.1'],
  'both.example.': ['127.0.0.1', '::1'],
  'six.example.': ['::1'],
  'many.example.': Array.from({ length: 16 }, (_, i) => `127.0.1.${i + 1}`),
}

function openResolver(t: Test): Promise<ScriptedServer> {
  return ScriptedServer.open(t, ({ question }) => {
    const owner = question!.name
    const known = HOSTS[printName(lowerName(owner))]
    if (known === undefined) return Rcode.NXDOMAIN
    return known.flatMap((text) => {
      const { bytes, family } = scanAddress(text)!
      const type = family === 1 ? RRType.A : RRType.AAAA
      if (type !== question!.type) return []
      return [{ owner, type, rrclass: RRClass.IN, ttlSeconds: 60, rdata: bytes }]
    })
  })
}

function openUpstream(t: Test): Promise<ScriptedServer> {
  return ScriptedServer.openRaw(t, ({ query, send }) => send(replyTo(query)))
}

t.test('host names are looked up at the start, once and without a search list', async (t) => {
  const [resolver, upstream] = [await openResolver(t), await openUpstream(t)]
  for (const to of ['up.example', 'dns://UP.example.']) {
    resolver.asked.length = 0
    const properties = `resolver ${resolver.address}`
    const { handler } = await started(t, `forward . ${to}:${upstream.port} {\n${properties}\n}`)
    for (let i = 0; i < 2; i++) {
      t.match(await show(handler, transaction(WWW)), { answer: [ADDRESS] }, to)
    }
    const asked = resolver.asked.map(({ query: { question } }) => {
      return `${printName(lowerName(question!.name))} ${question!.type}`
    })
    t.strictSame(asked.sort(), [`up.example. ${RRType.A}`, `up.example. ${RRType.AAAA}`], to)
  }
  t.equal(upstream.asked.length, 4)
})

t.test('a file has precedence over a host name', async (t) => {
  const [resolver, upstream] = [await openResolver(t), await openUpstream(t)]
  const path = join(t.testdir({}), 'up.example')
  writeFileSync(path, `nameserver ${upstream.address}\n`)
  const { handler } = await started(t, `forward . ${path} {\nresolver ${resolver.address}\n}`)
  t.match(await show(handler, transaction(WWW)), { answer: [ADDRESS] })
  t.equal(resolver.asked.length, 0)
})

t.test('all addresses of a name are upstreams', async (t) => {
  const resolver = await openResolver(t)
  const of = (to: string, more = ''): string => {
    return `forward . ${to} {\nresolver ${resolver.address}\n${more}\n}`
  }
  const table: readonly { corefile: string; want: RegExp | '' }[] = [
    { corefile: of('both.example'), want: '' },
    { corefile: of('both.example', 'source_address 127.0.0.2'), want: '' },
    { corefile: of('192.0.2.1 six.example:5353 tls://up.example'), want: '' },
    { corefile: of('many.example'), want: /more than 15 TOs configured: 16/ },
    {
      corefile: of('none.example'),
      want: /failed to resolve "none\.example": no address from 127\.0\.0\.1:\d+ \(ENOTFOUND\); write an IP address/,
    },
    {
      corefile: of('six.example', 'source_address 127.0.0.2'),
      want: /failed to resolve "six\.example": no address of the family of source_address 127\.0\.0\.2/,
    },
  ]
  for (const { corefile, want } of table) {
    const c = new SetUp(forward, corefile)
    const { faults } = await c.check()
    t.equal(faults.length, want === '' ? 0 : 1, corefile)
    t.match(faults[0] ?? '', want)
    const fault = await c.start().then(
      () => '',
      (error) => String(error.message),
    )
    t.match(fault, want, corefile)
    await c.stop()
  }
})

t.test('a server over TLS must have the name that it was looked up by', async (t) => {
  const resolver = await openResolver(t)
  const upstream = await openUpstream(t)
  for (const { host, want } of [
    { host: 'up.example', want: 'NOERROR' },
    { host: 'other.example', want: 'SERVFAIL' },
  ]) {
    const { key, cert } = selfSigned(host)
    const server = createServer({ key, cert }, (socket) => upstream.serve(socket))
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
    t.teardown(() => server.close())
    const { port } = server.address() as { readonly port: number }
    const ca = join(t.testdir({}), 'ca.pem')
    writeFileSync(ca, cert)
    const properties = `resolver ${resolver.address}\ntls ${ca}\nmax_connect_attempts 1`
    const corefile = `forward . tls://up.example:${port} {\n${properties}\n}`
    const { handler } = await started(t, corefile)
    t.match(await show(handler, transaction(WWW)), { status: want }, host)
  }
})

t.test('source_address is the address that queries come from', async (t) => {
  const upstream = await openUpstream(t)
  for (const [source, properties] of [
    ['127.0.0.1', ''],
    ['127.0.0.7', 'source_address 127.0.0.7'],
    ['127.0.0.8', 'source_address 127.0.0.7\nsource_address 127.0.0.8\nforce_tcp'],
  ] as const) {
    upstream.asked.length = 0
    const { handler } = await started(t, `forward . ${upstream.address} {\n${properties}\n}`)
    t.match(await show(handler, transaction(WWW)), { answer: [ADDRESS] }, properties)
    t.strictSame(
      upstream.asked.map(({ fromHost }) => fromHost),
      [source],
      properties,
    )
  }
})
