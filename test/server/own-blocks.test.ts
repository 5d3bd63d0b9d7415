import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { check } from '../../src/cli/check.ts'
import { ROOT_NAME } from '../../src/dns/name/name.ts'
import type { BlockConfig } from '../../src/plugin/directive.ts'
import { planListeners } from '../../src/server/listen-plan.ts'
import { findOwnBlock } from '../../src/server/own-blocks.ts'
import { recordOutput } from '../support/recorded-output.ts'
import { blockConfig } from '../support/setup.ts'

const FORWARD = (to: string): string => `.:5353 {\n bind 127.0.0.1 ::1\n forward . ${to}\n}\n`
const PLAIN = (to: string): string => `.:5353 {\n forward . ${to}\n}\n`
const BACK = (what: string, zone = '.'): RegExp => {
  return new RegExp(
    `^\\[WARNING\\] Corefile:\\d+: plugin/\\w+: ${what} is this server, so queries for ${zone.replaceAll('.', '\\.')} come back to this block; name another server$`,
  )
}
const SECONDARY = (zone: string, from: string): string =>
  `example.org:5353 {\n secondary ${zone} {\n transfer from ${from}\n }\n}\n`

const CASES: readonly (readonly [name: string, corefile: string, want: readonly RegExp[]])[] = [
  ['an address of bind', FORWARD('127.0.0.1:5353'), [BACK('forward .: 127.0.0.1:5353')]],
  ['an IPv6 address of bind', FORWARD('[::1]:5353'), [BACK('forward .: \\[::1\\]:5353')]],
  ['another port', FORWARD('127.0.0.1:5354 127.0.0.1'), []],
  ['another address', FORWARD('127.0.0.2:5353 192.0.2.1:5353'), []],
  ['one of two upstreams', FORWARD('192.0.2.1 127.0.0.1:5353'), [BACK('forward .: 127.\\S*')]],
  ['all addresses', PLAIN('127.0.0.2:5353'), [BACK('forward .: 127.0.0.2:5353')]],
  ['all addresses, IPv6', PLAIN('[::1]:5353'), [BACK('forward .: \\[::1\\]:5353')]],
  ['any address of this machine', PLAIN('0.0.0.0:5353'), [BACK('forward .: 0.0.0.0:5353')]],
  ['resolvers of Docker and systemd', PLAIN('127.0.0.11:5353 127.0.0.53:5353'), []],
  ['TLS', PLAIN('tls://127.0.0.1:5353'), []],
  ['a file', PLAIN('{DIR}/resolv.conf'), []],
  [
    'a file with this server',
    '.:53 {\n forward . {DIR}/resolv.conf\n}\n',
    [BACK('forward .: 127.0.0.1:53')],
  ],
  [
    'another block of the port',
    `a.example:5353 {\n forward . 127.0.0.1:5353\n}\n.:5353 {\n whoami\n}\n`,
    [BACK('forward .: 127.0.0.1:5353', 'a.example.')],
  ],
  [
    'a chain of blocks',
    '.:5353 {\n forward . 127.0.0.1:5354\n}\n.:5354 {\n forward . 192.0.2.1\n}\n',
    [],
  ],
  [
    'a part of the names, of another block',
    '.:5353 {\n forward a.example 127.0.0.1:5353\n}\na.example:5353 {\n whoami\n}\n',
    [],
  ],
  [
    'views',
    ".:5353 {\n view v {\n expr type() == 'A'\n }\n forward . 127.0.0.1:5353\n}\n.:5353 {\n whoami\n}\n",
    [],
  ],
  ['other names', '.:5353 {\n rewrite name suffix .a. .b.\n forward . 127.0.0.1:5353\n}\n', []],
  [
    'a zone from this server',
    SECONDARY('', '127.0.0.1:5353'),
    [BACK('secondary example.org.: 127.0.0.1:5353', 'example.org.')],
  ],
  ['a zone from another port', SECONDARY('', '127.0.0.1:5354'), []],
  [
    'a zone from another block',
    `${SECONDARY('', '127.0.0.1:5354')}example.org:5354 {\n whoami\n}\n`,
    [],
  ],
  [
    'this server as a peer',
    'k.example.com:5353 {\n kuadrant {\n manifests {DIR}\n site a\n peer 127.0.0.1:5353 192.0.2.1\n }\n}\nkdrnt:5353 {\n kuadrant {\n manifests {DIR}\n site a\n }\n}\n',
    [
      /^\[WARNING\] Corefile:5: plugin\/kuadrant: peer 127\.0\.0\.1:5353 is this server, .*; remove it$/,
    ],
  ],
  [
    'another port as a peer',
    'k.example.com:5353 {\n kuadrant {\n manifests {DIR}\n site a\n peer 127.0.0.1:5354\n }\n}\nkdrnt:5353 {\n kuadrant {\n manifests {DIR}\n site a\n }\n}\n',
    [],
  ],
]

async function warningsOf(t: Test, corefile: string): Promise<readonly string[]> {
  const directory = t.testdir({ 'resolv.conf': 'nameserver 127.0.0.1\n' })
  const { output, errors } = recordOutput(directory)
  writeFileSync(join(directory, 'Corefile'), corefile.replaceAll('{DIR}', directory))
  t.equal(await check(['-conf', join(directory, 'Corefile')], output), 0)
  return errors.filter((line) => line.includes('is this server'))
}

for (const [name, corefile, want] of CASES) {
  t.test(`an own address: ${name}`, async (t) => {
    const found = await warningsOf(t, corefile)
    t.match(found, want)
    t.equal(found.length, want.length, found.join('\n'))
  })
}

t.test('addresses of the machine, without those of Services', async (t) => {
  const config: BlockConfig = { ...blockConfig(['.']) }
  const block = {
    config,
    keyPositions: [{ file: 'Corefile', line: 1 }],
    chain: { name: 'end', serve: () => 0 },
    sources: [],
    takesChaos: false,
  }
  const { plans } = planListeners([block])
  const of = (address: string) => [
    { address, family: 'IPv4' as const, netmask: '', mac: '', internal: false, cidr: null },
  ]
  const interfaces = { eth0: of('192.0.2.1'), 'kube-ipvs0': of('10.96.0.10') }
  const find = (host: string, port = plans[0]!.port): BlockConfig | undefined => {
    return findOwnBlock(plans, [block], { host, port }, ROOT_NAME, () => interfaces)
  }
  for (const [host, isOurs] of [
    ['192.0.2.1', true],
    ['10.96.0.10', false],
    ['192.0.2.2', false],
  ] as const) {
    t.equal(find(host), isOurs ? config : undefined, host)
  }
  t.equal(find('192.0.2.1', 1), undefined)
})
