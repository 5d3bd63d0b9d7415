import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Dispenser } from '../../../src/corefile/dispenser.ts'
import { scanTokens } from '../../../src/corefile/lexer.ts'
import { draftOptions, scanOptions } from '../../../src/plugins/kuadrant/options.ts'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'

const block = (lines: string, zone = 'k.example.com'): string => {
  return `kuadrant ${zone} {\nmanifests zones\n${lines}\n}`
}

const FAULTS = [
  { name: 'a peer without a site', lines: 'peer 192.0.2.1', want: 'peer needs `site NAME`' },
  { name: 'a bad peer', lines: 'site a\npeer 192.0.2.1:0', want: 'port number expected' },
  { name: 'a peer twice', lines: 'site a\npeer ::1\npeer [::1]:53', want: 'appears twice' },
  { name: 'peer alone', lines: 'site a\npeer', want: 'argument' },
  { name: 'a bad site', lines: 'site -a', want: 'site takes a name' },
  { name: 'two sites', lines: 'site a\nsite b', want: 'site appears twice' },
  { name: 'a key without peers', lines: 'site a\ntsig k.example. f', want: 'tsig needs peers' },
  { name: 'a key without a file', lines: 'site a\ntsig k.example.', want: 'tsig needs the name' },
  {
    name: 'no duration',
    lines: 'site a\nsilent-site remove soon',
    want: 'silent-site remove must be from 1s to 8760h, got soon',
  },
  {
    name: 'silence without an end',
    lines: 'site a\nsilent-site keep',
    want: 'silent-site needs `keep DURATION` or `remove DURATION`',
  },
  {
    name: 'something else for silent sites',
    lines: 'site a\nsilent-site drop 1m',
    want: 'silent-site needs `keep DURATION` or `remove DURATION`',
  },
  { name: 'a cache without peers', lines: 'site a\npeer-cache f', want: 'peer-cache needs peers' },
  { name: 'a cache without a file', lines: 'site a\npeer ::1\npeer-cache', want: 'argument' },
  { name: 'two caches', lines: 'site a\npeer-cache f\npeer-cache g', want: 'appears twice' },
  {
    name: 'a rule of no kind',
    lines: 'site a\npeer ::1 {\nallow k.example.com\n}',
    want: 'name or sub',
  },
  {
    name: 'a rule of no name',
    lines: 'site a\npeer ::1 {\nallow name a..b\n}',
    want: 'domain name',
  },
  { name: 'another property', lines: 'site a\npeer ::1 {\ndeny\n}', want: "property 'deny'" },
  {
    name: 'what follows',
    lines: 'site a\npeer ::1 {\nallow name a.b MX\n}\nwhat',
    want: "property 'what'",
  },
  {
    name: 'probes of peers without peers',
    lines: 'site a\nprobe\nprobe-peers',
    want: 'probe-peers needs peers',
  },
  {
    name: 'probes of peers although probes are off',
    lines: 'site a\npeer ::1\nprobe off\nprobe-peers',
    want: 'probe-peers needs probe, which is off',
  },
  {
    name: 'something else than off',
    lines: 'site a\npeer ::1\nprobe-peers no',
    want: 'probe-peers takes no argument or off, got no',
  },
  { name: 'a quorum alone', lines: 'site a\nquorum 2', want: 'quorum needs peers' },
  {
    name: 'a quorum that is off',
    lines: 'site a\npeer ::1\nprobe-peers off\nquorum 2',
    want: 'quorum needs probe-peers, which is off',
  },
  { name: 'a hold-down alone', lines: 'hold-down 60s', want: 'hold-down needs peers' },
  {
    name: 'a quorum of no sites',
    lines: 'site a\npeer ::1\nprobe\nprobe-peers\nquorum 0',
    want: 'quorum must be from 1 to 65 sites, got 0',
  },
  {
    name: 'a quorum of more sites than there can be',
    lines: 'site a\nquorum 4\npeer ::1 ::2',
    want: 'quorum 4 is never reached: this site and 2 peers are at most 3 sites; write at most 3',
  },
  {
    name: 'too long a hold-down',
    lines: 'site a\npeer ::1\nprobe\nprobe-peers\nhold-down 2h',
    want: 'hold-down must be from 1s to 1h, got 2h',
  },
  {
    name: 'too short a duration',
    lines: 'site a\nsilent-site keep 1ms',
    want: 'silent-site keep must be from 1s to 8760h',
  },
]
for (const { name, lines, want } of FAULTS) {
  t.test(`${name} is refused, with the cure`, async (t) => {
    t.match(setupError(kuadrant, block(lines)), want)
  })
}

/** Options of a block with these lines. */
function optionsOf(lines: string) {
  const dispenser = new Dispenser(scanTokens(block(lines), 'Corefile'))
  const c = { dispenser, block: new SetUp(kuadrant, block('')).block, warn() {} }
  return scanOptions(c, draftOptions(dispenser))
}

t.test('rules of peers are read, and other properties after them', async (t) => {
  const lines = `site a
    peer 192.0.2.1 192.0.2.2 {
        allow name k.example.com MX
        allow subdomain s.k.example.com
    }
    peer 192.0.2.3
    silent-site remove 1h`
  const { peering } = optionsOf(lines)
  t.equal(peering.peers.length, 3)
  t.equal(peering.expiryMs, 3_600_000)
  const mail = { kind: 'name', name: 'k.example.com', types: new Set(['MX']) }
  const rules = [mail, { kind: 'subdomain', name: 's.k.example.com', types: undefined }]
  t.strictSame(
    [...peering.rules],
    [
      ['192.0.2.1:53', rules],
      ['192.0.2.2:53', rules],
    ],
  )
})

t.test('a check warns of peers without a key', async (t) => {
  const directory = t.testdir({ zones: {}, keys: 'key "a." { secret "AAAA"; };\n' })
  const check = async (lines: string) => {
    const text = block(`site a\n${lines}`).replace('zones', join(directory, 'zones'))
    return (await new SetUp(kuadrant, text).check()).warnings.join()
  }
  t.match(await check('peer ::1'), /peer without tsig: any host that can forge packets/)
  t.notMatch(await check(`peer ::1\ntsig a ${join(directory, 'keys')}`), /without tsig/)
  t.notMatch(await check(''), /without tsig/)
})

t.test('the zone kdrnt is for others to ask, not to be merged', async (t) => {
  t.match(setupError(kuadrant, block('site a\npeer ::1', 'kdrnt')), 'in a server block of its own')
  t.equal(setupError(kuadrant, block('site a', 'kdrnt')), '')
})

t.test('a cluster has an operator for that', async (t) => {
  const text = 'kuadrant k.example.com {\nsite a\npeer ::1\n}'
  t.match(setupError(kuadrant, text), 'peer needs manifests')
})

t.test('a check finds what is wrong with the key', async (t) => {
  const directory = t.testdir({ zones: {}, keys: 'key "a." { secret "AAAA"; };\n' })
  const check = (name: string) => {
    const lines = `site a\npeer ::1\ntsig ${name} ${join(directory, 'keys')}`
    return new SetUp(kuadrant, block(lines).replace('zones', join(directory, 'zones'))).check()
  }
  t.strictSame((await check('a')).faults, [])
  t.match((await check('b')).faults.join(), 'key b.')
  writeFileSync(join(directory, 'keys'), 'key "a." { secret "?"; };')
  const { faults } = await check('a')
  t.match(faults.join(), 'the secret is not base64')
})

t.test('a check reports a file that would not be used', async (t) => {
  const directory = t.testdir({ zones: {}, other: 'zones\n' })
  const check = async (file: string) => {
    const lines = `site a\npeer ::1\npeer-cache ${join(directory, file)}`
    const text = block(lines).replace('zones', join(directory, 'zones'))
    return (await new SetUp(kuadrant, text).check()).warnings.join()
  }
  t.notMatch(await check('new'), 'peer cache')
  t.match(await check('other'), 'has other content; the file is not replaced')
  t.match(await check('missing/new'), 'is not a directory')
})

t.test('a site with peers probes, unless its Corefile switches this off', async (t) => {
  const both = optionsOf('site a\npeer ::1')
  t.match(both.health?.probe, { file: '', isDefault: true })
  t.strictSame(both.peering.probePeers, { quorum: 0, holdDownMs: 0 })
  const own = optionsOf('site a\npeer ::1\nprobe-peers off')
  t.match(own.health?.probe, { file: '', isDefault: true })
  t.equal(own.peering.probePeers, undefined)
  const none = optionsOf('site a\npeer ::1\nprobe off')
  t.equal(none.health?.probe, 'off')
  t.equal(none.peering.probePeers, undefined)
  const set = optionsOf('site a\nquorum 2\nhold-down 5s\nprobe-peers\nprobe states\npeer ::1')
  t.match(set.health?.probe, { file: /states$/, isDefault: undefined })
  t.strictSame(set.peering.probePeers, { quorum: 2, holdDownMs: 5000 })
  t.equal(optionsOf('site a').health?.probe, undefined, 'a single site asks for probes')
})
