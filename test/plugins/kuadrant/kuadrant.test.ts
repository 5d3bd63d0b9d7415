import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import { printType, RRType } from '../../../src/dns/iana/types.ts'
import { printName } from '../../../src/dns/name/name.ts'
import { printRdata } from '../../../src/dns/rdata/index.ts'
import type { Handler } from '../../../src/plugin/handler.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'
import { KUADRANT_BLOCKS } from '../../../src/plugins/kuadrant/kuadrant-blocks.ts'
import { scanNamespaces } from '../../../src/plugins/kuadrant/namespaces.ts'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { isManifestSourceOpen } from '../../../src/sources/manifests/acquire-manifests.ts'
import { processResources, SetUp, setupError } from '../../support/setup.ts'
import { transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'

const PREFIX = /^Corefile:\d+ - Error during parsing: /

t.test('blocks that the directive refuses, and why', (t) => {
  const table: readonly { name: string; given: string; want: RegExp }[] = [
    {
      name: 'kubeconfig without a file',
      given: 'kuadrant {\n kubeconfig\n}',
      want: /Wrong argument count/,
    },
    {
      name: 'kubeconfig with two contexts',
      given: 'kuadrant {\n kubeconfig f a b\n}',
      want: /Wrong argument count/,
    },
    {
      name: 'kubeconfig twice',
      given: 'kuadrant {\n kubeconfig f\n kubeconfig f\n}',
      want: /appears twice/,
    },
    {
      name: 'two sources',
      given: 'kuadrant {\n manifests a\n kubeconfig f\n}',
      want: /manifests and kubeconfig exclude each other/,
    },
    {
      name: 'sources without a kind',
      given: 'kuadrant {\n sources\n}',
      want: /Wrong argument count/,
    },
    {
      name: 'sources of an unknown kind',
      given: 'kuadrant {\n sources dnsrecord gatway\n}',
      want: /sources: unknown kind gatway; the kinds are dnsrecord, .*; did you mean gateway\?/,
    },
    {
      name: 'sources twice',
      given: 'kuadrant {\n sources gateway\n sources dnsrecord\n}',
      want: /sources appears twice/,
    },
    {
      name: 'sources of manifests',
      given: 'kuadrant {\n sources gateway\n manifests a\n}',
      want: /sources and manifests exclude each other: sources needs a cluster/,
    },
    {
      name: 'manifests with sources',
      given: 'kuadrant {\n manifests a\n sources gateway\n}',
      want: /sources and manifests exclude each other: sources needs a cluster/,
    },
    {
      name: 'probe with two files',
      given: 'kuadrant {\n manifests a\n probe a b\n}',
      want: /Wrong argument count/,
    },
    {
      name: 'probe twice',
      given: 'kuadrant {\n manifests a\n probe a\n probe a\n}',
      want: /probe appears twice/,
    },
    {
      name: 'probe in a cluster',
      given: 'kuadrant {\n probe\n}',
      want: /probe needs manifests, alias-resolver or other sources than dnsrecord/,
    },
    {
      name: 'probe-allow without probe',
      given: 'kuadrant {\n manifests a\n probe-allow 127.0.0.0/8\n}',
      want: /probe-allow needs probe/,
    },
    {
      name: 'probe-exec without probe',
      given: 'kuadrant {\n manifests a\n probe-exec a /bin/true\n}',
      want: /probe-exec needs probe/,
    },
    {
      name: 'probe-exec without a command',
      given: 'kuadrant {\n manifests a\n probe\n probe-exec a\n}',
      want: /Wrong argument count/,
    },
    {
      name: 'probe-exec with a relative path',
      given: 'kuadrant {\n manifests a\n probe\n probe-exec a bin/check\n}',
      want: /probe-exec a: bin\/check must be an absolute path/,
    },
    {
      name: 'probe-exec with a program that is missing',
      given: 'kuadrant {\n manifests a\n probe\n probe-exec a /bin/no-such-program -x\n}',
      want: /:4.*probe-exec a: \/bin\/no-such-program is not an executable file/,
    },
    {
      name: 'probe-exec with a folder',
      given: 'kuadrant {\n manifests a\n probe\n probe-exec a /bin/\n}',
      want: /probe-exec a: \/bin\/ is not an executable file/,
    },
    {
      name: 'probe-exec with a wrong name',
      given: 'kuadrant {\n manifests a\n probe\n probe-exec a/b /bin/true\n}',
      want: /probe-exec: a\/b is not a name of a command/,
    },
    {
      name: 'probe-exec twice',
      given:
        'kuadrant {\n manifests a\n probe\n probe-exec a /bin/true\n probe-exec a /bin/false\n}',
      want: /probe-exec a appears twice/,
    },
    {
      name: 'probe-allow of an address',
      given: 'kuadrant {\n manifests a\n probe\n probe-allow 127.0.0.1\n}',
      want: /probe-allow: 127\.0\.0\.1 is not a network; /,
    },
    {
      name: 'slow-start without a duration',
      given: 'kuadrant {\n manifests a\n slow-start\n}',
      want: /Wrong argument count/,
    },
    {
      name: 'slow-start of a number',
      given: 'kuadrant {\n manifests a\n slow-start 5\n}',
      want: /slow-start is not a duration: 5/,
    },
    {
      name: 'slow-start of a moment',
      given: 'kuadrant {\n manifests a\n slow-start 10ms\n}',
      want: /slow-start must be from 1s to 24h0m0s, got 10ms/,
    },
    {
      name: 'an unknown property',
      given: 'kuadrant {\n foo bar\n}',
      want: /unknown property 'foo'/,
    },
    {
      name: 'manifests without a directory',
      given: 'kuadrant {\n manifests\n}',
      want: /Wrong argument count/,
    },
    {
      name: 'manifests with two',
      given: 'kuadrant {\n manifests a b\n}',
      want: /Wrong argument count/,
    },
    {
      name: 'manifests twice',
      given: 'kuadrant {\n manifests a\n manifests b\n}',
      want: /appears twice/,
    },
    {
      name: 'rname without an address',
      given: 'kuadrant {\n manifests a\n rname\n}',
      want: /Wrong argument count/,
    },
    {
      name: 'a bad name server',
      given: 'kuadrant {\n manifests a\n nameserver a..b\n}',
      want: /not a valid domain name: a\.\.b/,
    },
    {
      name: 'a bad address',
      given: 'kuadrant {\n manifests a\n nameserver ns1 1.2.3\n}',
      want: /not an IP address: 1\.2\.3/,
    },
    {
      name: 'serials without a file',
      given: 'kuadrant {\n manifests a\n serials\n}',
      want: /Wrong argument count/,
    },
    {
      name: 'no namespaces',
      given: 'kuadrant {\n manifests a\n allow-namespaces\n}',
      want: /Wrong argument count/,
    },
    {
      name: 'a bad zone',
      given: 'kuadrant a..b {\n manifests a\n}',
      want: /zone is not a valid domain name/,
    },
    {
      name: 'the directive twice',
      given: 'kuadrant {\n manifests a\n}\nkuadrant {\n manifests b\n}',
      want: /only be used once per Server Block/,
    },
  ]
  for (const { name, given, want } of table) {
    const message = setupError(kuadrant, given)
    t.match(message, PREFIX, name)
    t.match(message, want, name)
  }
  t.end()
})

function manifest(name: string, address: string, metadata = ''): string {
  const host = name.includes('.') ? name : `${name}.k.example.com`
  return `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: ${name}
${metadata}spec:
  rootHost: ${host}
  endpoints:
  - dnsName: ${host}
    recordType: A
    targets:
    - ${address}
`
}

/** The plugin below: an rcode that no other plugin returns. */
const NEXT: Handler = { name: 'next', serve: () => 9 }

/** `owner ttl TYPE rdata` of every record of the response. */
function printRecords({ response }: Transaction): string[] {
  return Array.from({ length: response.count }, (_, i) => {
    const owner = printName(response.ownerBytes[i]!, response.ownerOffset[i])
    const at = response.rdataOffset[i]!
    const rdata = response.rdataBytes[i]!.slice(at, at + response.rdataOctets[i]!)
    const type = response.type[i]!
    return `${owner} ${response.ttlSeconds[i]} ${printType(type)} ${printRdata(type, rdata)}`
  })
}

async function serve(t: Test, directory: string, zone: string, properties = '') {
  const setUp = new SetUp(kuadrant, `kuadrant {\n manifests ${directory}\n${properties}\n}`, [zone])
  await setUp.start()
  let isStopped = false
  const stop = async () => {
    if (!isStopped) await setUp.stop()
    isStopped = true
  }
  t.teardown(stop)
  const handler = setUp.handler(NEXT)
  /** The records of the reply, or its rcode where there are none. */
  const ask = async (name: string, type: number = RRType.A): Promise<string> => {
    const tx = transaction({ name, type })
    const rcode = await handler.serve(tx)
    const records = printRecords(tx)
    return records.length > 0 ? records.join(' | ') : `rcode ${rcode}`
  }
  const serial = async (): Promise<number> =>
    Number((await ask(zone, RRType.SOA)).split(' SOA ')[1]?.split(' ')[2])
  return { setUp, ask, serial, stop }
}

t.test('records are served, with the name servers of the Corefile and their glue', async (t) => {
  const directory = t.testdir({ 'a.yaml': manifest('a', '192.0.2.1') })
  const properties =
    'nameserver ns1.k.example.com 192.0.2.53 2001:db8::53\nnameserver ns.example.org 192.0.2.54\nrname dns.admin@example.com'
  const { ask, setUp } = await serve(t, directory, 'k.example.com.', properties)
  t.match(await ask('a.k.example.com.'), /a\.k\.example\.com\. 60 .*192\.0\.2\.1/)
  t.match(
    setUp.lines.filter((line) => line.includes('nameserver')),
    [/Corefile:\d+: nameserver ns\.example\.org\. is not in k\.example\.com\., so its addresses/],
  )
  const ns = await ask('k.example.com.', RRType.NS)
  t.match(ns, /ns1\.k\.example\.com\./)
  t.match(ns, /ns\.example\.org\./)
  t.match(await ask('ns1.k.example.com.', RRType.AAAA), /2001:db8::53/)
  t.match(
    await ask('k.example.com.', RRType.SOA),
    /SOA ns1\.k\.example\.com\. dns\\\.admin\.example\.com\. \d+ 7200 1800 86400 60/,
  )
})

t.test('a bad mailbox gets a warning and the default', async (t) => {
  const { ask, setUp } = await serve(t, t.testdir({}), 'k.example.com.', 'rname admin')
  t.match(await ask('k.example.com.', RRType.SOA), /hostmaster\.k\.example\.com\./)
  t.match(setUp.lines.join('\n'), /rname "admin" is not an e-mail address/)
})

t.test('the serial grows with content, and with nothing else', async (t) => {
  const directory = t.testdir({ 'a.yaml': manifest('a.s.example', '192.0.2.1') })
  const first = await serve(t, directory, 's.example.')
  const start = await first.serial()
  t.equal(start, 1_700_000_000, 'the time, where nothing is known')
  writeFileSync(
    join(directory, 'a.yaml'),
    `# another text\n${manifest('a.s.example', '192.0.2.1')}`,
  )
  writeFileSync(join(directory, 'b.yaml'), manifest('b.s.example', '192.0.2.2'))
  await until(async () => (await first.ask('b.s.example.')).includes('192.0.2.2'), 'the new record')
  t.equal(await first.serial(), start + 1)
  const second = await serve(t, directory, 's.example.')
  t.equal(await second.serial(), start + 1, 'a reload of the same content')
  await first.stop()
  writeFileSync(join(directory, 'b.yaml'), manifest('b.s.example', '192.0.2.3'))
  await until(async () => (await second.ask('b.s.example.')).includes('192.0.2.3'), 'the edit')
  t.equal(await second.serial(), start + 2)
})

t.test('a record goes to the longest zone of any block, or where its label says', async (t) => {
  const label = '  labels:\n    kuadrant.io/coredns-zone-name: example.com\n'
  const directory = t.testdir({
    'a.yaml':
      manifest('a', '192.0.2.1') +
      manifest('b', '192.0.2.2', label) +
      manifest('c.example.com', '192.0.2.3'),
  })
  const wide = await serve(t, directory, 'example.com.')
  t.match(await wide.ask('a.k.example.com.'), /192\.0\.2\.1/, 'while there is no longer zone')
  const narrow = await serve(t, directory, 'k.example.com.')
  t.match(await narrow.ask('a.k.example.com.'), /192\.0\.2\.1/)
  t.notMatch(await wide.ask('a.k.example.com.'), /192\.0\.2\.1/)
  t.match(await wide.ask('b.k.example.com.'), /192\.0\.2\.2/)
  t.notMatch(await narrow.ask('b.k.example.com.'), /192\.0\.2\.2/)
  t.match(await wide.ask('c.example.com.'), /192\.0\.2\.3/)
  await narrow.stop()
  t.match(await wide.ask('a.k.example.com.'), /192\.0\.2\.1/, 'once the longer zone is gone')
})

t.test('records of other namespaces are left out', async (t) => {
  const directory = t.testdir({
    'a.yaml': manifest('a', '192.0.2.1', '  namespace: good\n') + manifest('b', '192.0.2.2'),
  })
  const { ask } = await serve(t, directory, 'k.example.com.', 'allow-namespaces good')
  t.match(await ask('a.k.example.com.'), /192\.0\.2\.1/)
  t.notMatch(await ask('b.k.example.com.'), /192\.0\.2\.2/)
})

t.test('names that do not exist fall through where that is wanted', async (t) => {
  const directory = t.testdir({ 'a.yaml': manifest('a', '192.0.2.1') })
  const plain = await serve(t, directory, 'k.example.com.')
  t.notMatch(await plain.ask('nope.k.example.com.'), /rcode 9/)
  t.match(await plain.ask('elsewhere.example.net.'), /rcode 9/, 'no zone of ours')
  const falling = await serve(t, directory, 'k.example.com.', 'fallthrough')
  t.match(await falling.ask('nope.k.example.com.'), /rcode 9/)
  t.notMatch(await falling.ask('a.k.example.com.', RRType.TXT), /rcode 9/, 'NODATA')
})

t.test('transfers of our zones are refused', async (t) => {
  const { ask } = await serve(t, t.testdir({}), 'k.example.com.', 'fallthrough')
  for (const type of [RRType.AXFR, RRType.IXFR]) {
    t.equal(await ask('k.example.com.', type), 'rcode 5')
    t.equal(await ask('nope.k.example.com.', type), 'rcode 5')
    t.equal(await ask('example.net.', type), 'rcode 9', 'no zone of ours')
  }
})

t.test('readiness and metrics report invalid files and refused records', async (t) => {
  const directory = t.testdir({ 'a.yaml': manifest('a', '192.0.2.1') + manifest('b', 'nonsense') })
  const setUp = new SetUp(kuadrant, `kuadrant {\n manifests ${directory}\n}`, ['k.example.com.'])
  t.match(setUp.readiness[0]?.check(), /not loaded yet/)
  await setUp.start()
  t.teardown(() => setUp.stop())
  t.equal(setUp.readiness[0]?.check(), '', 'a refused record is no reason')
  const count = (zone: string, state: string) =>
    setUp.metric(`sextant_kuadrant_records{source="${directory}",zone="${zone}",state="${state}"}`)
  t.equal(await count('k.example.com.', 'served'), 1)
  t.equal(await count('', 'refused'), 1)
  const badFiles = () => setUp.metric(`sextant_kuadrant_bad_files{source="${directory}"}`)
  t.equal(await badFiles(), 0)
  writeFileSync(join(directory, 'c.yaml'), 'a: b: c\n')
  await until(() => setUp.readiness[0]?.check() !== '', 'the bad file to be noticed')
  t.match(setUp.readiness[0]?.check(), /c\.yaml:1: /)
  t.equal(await badFiles(), 1)
  t.equal((await setUp.check()).faults.length, 2)
})

t.test('metrics of a source go with its last user', async (t) => {
  const [one, two] = [t.testdir({ one: {}, two: {} })].flatMap((d) => [`${d}/one`, `${d}/two`])
  const metrics = new MetricsRegistry()
  const start = async (directory: string) => {
    const setUp = new SetUp(kuadrant, `kuadrant {\n manifests ${directory}\n}`, ['k.example.com.'])
    Object.assign(setUp, { metrics })
    await setUp.start()
    return setUp
  }
  const sources = async (): Promise<unknown> => {
    const found = (await metrics.print()).matchAll(
      /source="[^"]*\/(\w+)",zone="k\.example\.com\."/g,
    )
    return [...new Set([...found].map((match) => match[1]))].sort()
  }
  const old = await start(one!)
  const other = await start(two!)
  t.strictSame(await sources(), ['one', 'two'])
  const reloaded = await start(one!)
  await old.stop()
  t.strictSame(await sources(), ['one', 'two'], 'the reloaded block shows the same series')
  await other.stop()
  t.strictSame(await sources(), ['one'])
  await reloaded.stop()
  t.notMatch(await metrics.print(), /source="/)
})

t.test('a block that is over before it began claims nothing any more', async (t) => {
  const directory = t.testdir({})
  const prepared = () =>
    new SetUp(kuadrant, `kuadrant {\n manifests ${directory}\n}`, ['k.example.com.'])
  const before = prepared()
  await before.stop()
  await before.shared.acquire(KUADRANT_BLOCKS).group.assignZones()
  t.equal(isManifestSourceOpen(directory, processResources), false, 'asked after its end')
  const meanwhile = prepared()
  const claimed = meanwhile.shared.acquire(KUADRANT_BLOCKS).group.assignZones()
  await meanwhile.stop()
  await claimed
  t.equal(isManifestSourceOpen(directory, processResources), false, 'asked before its end')
})

t.test('a directory that does not exist stops the start, and names the line', async (t) => {
  const setUp = new SetUp(kuadrant, 'kuadrant {\n manifests /nowhere/at/all\n}', ['k.example.com.'])
  await t.rejects(setUp.start(), {
    message: /^Corefile:2 - .*\/nowhere\/at\/all.*cannot be listed/,
  })
  await setUp.stop()
})

t.test(
  'a cluster that can not be asked stops the start, and check, and names the line',
  async (t) => {
    const table: readonly { name: string; given: string; want: RegExp }[] = [
      {
        name: 'no source, and no cluster around',
        given: 'kuadrant',
        want: /^Corefile:1 - Error during parsing: not in a Kubernetes cluster .*`manifests DIR`$/,
      },
      {
        name: 'a kubeconfig that does not exist',
        given: 'kuadrant {\n rname a@b.c\n kubeconfig /nowhere/kubeconfig\n}',
        want: /^Corefile:3 - Error during parsing: \/nowhere\/kubeconfig: cannot be read: ENOENT/,
      },
      {
        name: 'a context that is not in it',
        given: `kuadrant {\n kubeconfig ${t.testdir({ config: 'contexts: []' })}/config here\n}`,
        want: /^Corefile:2 - .*\/config: has no context "here"$/,
      },
    ]
    for (const { name, given, want } of table) {
      const setUp = new SetUp(kuadrant, given, ['k.example.com.'])
      await t.rejects(setUp.start(), { message: want }, name)
      await t.rejects(setUp.check(), { message: want }, name)
      await setUp.stop()
    }
  },
)

t.test('WATCH_NAMESPACES is a list with or without blanks', (t) => {
  const table = [
    { given: '', want: [] },
    { given: 'a', want: ['a'] },
    { given: ' a, b ,,c,', want: ['a', 'b', 'c'] },
  ]
  for (const { given, want } of table) t.strictSame(scanNamespaces(given), want)
  for (const given of ['.', 'team,..', 'a b', 'Team', 'a/b', `${'a'.repeat(64)}`]) {
    t.throws(
      () => scanNamespaces(given),
      { name: 'InputError', message: /is not a namespace/ },
      given,
    )
  }
  t.end()
})
