import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runKeys } from '../../src/cli/keys.ts'
import { RRClass, RRType } from '../../src/dns/iana/index.ts'
import type { ResourceRecord } from '../../src/dns/message/message.ts'
import { ROOT_NAME, scanName } from '../../src/dns/name/name.ts'
import { RdataError, scanRdata, splitFields } from '../../src/dns/rdata/index.ts'
import {
  printRollState,
  type RollKey,
  scanRollState,
  type Timeline,
  type TimelineName,
} from '../../src/signing/rolls/roll-state.ts'
import { settled } from '../../src/signing/rolls/timeline.ts'
import { needs, run } from '../support/peer.ts'
import { recordOutput } from '../support/recorded-output.ts'
import { ScriptedServer } from '../support/scripted-server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const ZONE = 'example.org'

/** Runs `sextant keys`; returns its exit code and lines. Paths have no `folder`. */
async function keys(folder: string, ...argv: readonly string[]) {
  const { output, printed, errors } = recordOutput(folder)
  const code = await runKeys(argv, output)
  return { code, printed, errors }
}

interface ListedRow {
  readonly id: string
  readonly tag: number
  readonly role: string
  readonly state: string
}

async function listed(folder: string): Promise<readonly ListedRow[]> {
  const { printed } = await keys(folder, 'list', ZONE, '-keys', folder, '-o', 'json')
  const { keys: found } = JSON.parse(printed.join('')) as { keys: ListedRow[] }
  return found
}

t.test('keys are made and listed', async (t) => {
  const folder = temporaryDirectory(t)
  const place = ['-keys', folder]
  const made = await keys(folder, 'generate', ZONE, ...place)
  t.match(made, {
    code: 0,
    printed: [
      /^KEYS OF +ROLE +ALGORITHM +TAG +STATE +DUE +NEXT STEP$/,
      /^example\.org\. +csk .* unused +- +-$/,
    ],
  })
  await keys(folder, 'generate', ZONE, ...place, '--zsk', '--algorithm', 'ed25519')
  await keys(folder, 'generate', 'example.net', ...place, '--algorithm=RSASHA256', '--bits=2048')
  const { code, printed, errors } = await keys(folder, 'list', ...place, '-o', 'wide')
  t.strictSame([code, errors], [0, []])
  t.match(printed, [
    /ID$/,
    /^example\.net\. +csk +RSASHA256 +\d+ +unused +- +- +Kexample\.net\.\+008\+\d{5}$/,
    /^example\.org\. +ksk +ECDSAP256SHA256 +\d+ +unused +- +- +Kexample\.org\.\+013\+\d{5}$/,
    /^example\.org\. +zsk +ED25519 +\d+ +unused +- +- +Kexample\.org\.\+015\+\d{5}$/,
  ])
  const [ksk] = await listed(folder)
  t.match(ksk, { zone: 'example.org.', role: 'ksk', algorithm: 'ECDSAP256SHA256' })
  const secrets = readdirSync(folder)
    .filter((name) => name.endsWith('.private'))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').match(/(?<=: )\S{30,}/g))
  t.ok(secrets.length > 2)
  const shown = [...printed, ...(await keys(folder, 'list', ...place, '-o', 'json')).printed].join()
  for (const secret of secrets) t.notOk(shown.includes(secret!))

  chmodSync(join(folder, `${ksk!.id}.private`), 0o644)
  const faulty = await keys(folder, 'list', ZONE, ...place)
  t.match(faulty, { code: 1, printed: { length: 2 }, errors: [/other users can read .*chmod 600/] })
})

t.test('arguments that are refused', async (t) => {
  const folder = temporaryDirectory(t)
  for (const [argv, reason] of [
    ['', /keys needs one of list, generate, /],
    ['lst', /did you mean list\?/],
    ['list a b', /unexpected argument "b"/],
    ['list a..b', /"a\.\.b" is not a domain name/],
    ['list --zsk', /keys list has no flag --zsk; leave it out/],
    ['list -o xml', /invalid value xml for -o/],
    ['generate', /keys generate: ZONE is missing/],
    ['generate a --zsk --ksk', /--ksk and --zsk exclude each other/],
    ['generate a --algorithm RSASHA1', /--algorithm must be one of RSASHA256, .* not "RSASHA1"/],
    ['generate a --algorithm ED25518', /did you mean ED25519\?/],
    ['generate a --algorithm RSASHA256 --bits 1024', /--bits must be one of 2048, 3072, 4096/],
    ['generate a --bits 2048', /--bits is the length of an RSA key/],
    ['export a', /keys export: KEY is missing/],
    ['export a 1', /a\. has no key 1/],
    ['import a', /keys import: FILE is missing/],
    ['import a /dev/null', /\/dev\/null is not a regular file/],
    ['ds a', /a\. has no CSK and no KSK; sextant keys generate makes one/],
    ['ds a --digest SHA-1', /--digest must be SHA-256 or SHA-384/],
    ['ds a -parent example.org', /-parent must be IP or IP:PORT/],
    ['roll a', /keys roll needs one of --ksk, --zsk, --csk, --algorithm NAME and --delegation/],
    ['roll a --zsk --algorithm ED25519', /keys roll needs one of/],
    ['roll a --zsk', /no server has signed a\. with these keys yet; start one first/],
    ['roll a --delegation no', /--delegation must be signed or unsigned, not "no"/],
    ['ds a --published', /no server has signed a\./],
    ['retire a 1', /a\. has no key 1/],
    ['retire a', /keys retire: KEY is missing/],
  ] as const) {
    const words = argv.split(' ').filter((word) => word !== '')
    const place = words.length > 0 ? ['-keys', folder] : []
    const { code, printed, errors } = await keys(folder, ...words, ...place)
    t.strictSame([code, printed], [1, []], argv)
    t.match(errors.join('\n'), reason, argv)
  }
})

t.test('the directory that the Corefile names', async (t) => {
  const folder = temporaryDirectory(t)
  const conf = join(folder, 'Corefile')
  const corefile = (text: string): void => writeFileSync(conf, text)
  const list = () => keys(folder, 'list', '-conf', conf)
  corefile(`example.org {\n dnssec {\n keys ${folder}/keys\n }\n}\n`)
  await keys(folder, 'generate', ZONE, '-conf', conf)
  t.equal((await listed(join(folder, 'keys'))).length, 1)
  corefile(`a {\n root ${folder}\n dnssec a b {\n policy p {\n x 1\n }\n keys keys\n }\n}\n`)
  t.equal((await list()).printed.length, 2, 'relative to root')
  corefile(`a {\n dnssec {\n keys /a\n }\n}\nb {\n dnssec {\n keys /b\n }\n}\n`)
  t.match((await list()).errors, [/several directories of keys; choose one with -keys: \/a, \/b/])
  corefile(`a {\n dnssec {\n keys secret a/b\n }\n}\n`)
  t.match((await list()).errors, [/names no directory of keys; add -keys DIR/])
  corefile('a {')
  t.match((await list()).errors, [/Corefile:1/])
  t.match((await keys(folder, 'list', '-conf', folder)).errors, [/cannot read Corefile/])
})

t.test('a key is exported and imported in each form', async (t) => {
  const [from, to] = [temporaryDirectory(t), temporaryDirectory(t)]
  for (const algorithm of ['RSASHA512', 'ECDSAP384SHA384', 'ED25519']) {
    const into = join(to, algorithm)
    await keys(from, 'generate', ZONE, '-keys', from, '--zsk', '--algorithm', algorithm)
    const { id, tag } = (await listed(from)).find((key) => key.role === 'zsk')!
    const exportKey = (...more: string[]) => keys(from, 'export', ZONE, ...more, '-keys', from)

    t.match(await exportKey(id, '--to', into), { code: 0, printed: [join(into, id)] })
    t.match(await exportKey(id, '--to', into), { code: 1, errors: [/make another key/] })
    for (const name of [`${id}.key`, `${id}.private`])
      t.equal(readFileSync(join(into, name), 'utf8'), readFileSync(join(from, name), 'utf8'))
    const copy = join(to, `${algorithm}-copy`)
    const pair = join(into, `${id}.private`)
    t.equal((await keys(to, 'import', ZONE, pair, '-keys', copy)).code, 0)
    t.match(await keys(to, 'import', ZONE, pair, '-keys', copy), {
      code: 1,
      errors: [/has, or had/],
    })
    t.equal(readFileSync(join(copy, `${id}.private`), 'utf8'), readFileSync(pair, 'utf8'), 'times')

    for (const form of ['--pem', '']) {
      const file = join(to, `${algorithm}-file${form}`)
      const { printed } = await exportKey(String(tag), ...(form === '' ? [] : [form]))
      writeFileSync(file, `${printed.join('\n')}\n`, { mode: 0o600 })
      const folder = `${file}-keys`
      const importKey = (...more: string[]) =>
        keys(to, 'import', ZONE, file, '-keys', folder, ...more)
      t.match((await importKey()).errors, [/does not say what the key is for; add --csk/])
      // PEM does not say which hash an RSA key signs with.
      const more = form === '--pem' && algorithm === 'RSASHA512' ? ['--algorithm', algorithm] : []
      t.equal((await importKey('--zsk', ...more)).code, 0)
      t.strictSame(
        (await listed(folder)).map((key) => key.id),
        [id],
      )
      chmodSync(file, 0o640)
      t.match((await importKey('--zsk')).errors, [/other users can read/])
    }
    const { printed } = await exportKey(id, '--public')
    const publicFile = join(to, `${algorithm}.key`)
    writeFileSync(publicFile, `${printed[0]}\n`)
    const folder = join(to, `${algorithm}-public`)
    await keys(to, 'import', ZONE, publicFile, '--public', '-keys', folder)
    t.match(await listed(folder), [{ id, state: 'public' }])
    const refused = await keys(to, 'export', ZONE, id, '-keys', folder)
    t.match(refused.errors, [/a key of another provider.*add --public/])
    for (const ending of ['key', 'private']) rmSync(join(from, `${id}.${ending}`))
  }
})

/** As `pdnsutil export-zone-key` prints it. */
const POWERDNS = `Private-key-format: v1.2
Algorithm: 13 (ECDSAP256SHA256)
PrivateKey: GU6SnQ/Ou+xC5RumuIUIuJZteXT2z0O/ok1s38Et6mQ=

`
const PEM =
  '-----BEGIN ENCRYPTED PRIVATE KEY-----\nsecretsecret\n-----END ENCRYPTED PRIVATE KEY-----\n'

t.test('files of other programs', async (t) => {
  const folder = temporaryDirectory(t)
  const file = join(folder, 'file')
  const importText = (text: string, ...more: string[]) => {
    writeFileSync(file, text, { mode: 0o600 })
    return keys(folder, 'import', ZONE, file, '-keys', join(folder, 'keys'), ...more)
  }
  const imported = await importText(POWERDNS, '--csk')
  t.match(imported, { code: 0, printed: [/./, /csk +ECDSAP256SHA256 +55648/] }, 'RFC 6605')
  for (const [text, more, reason] of [
    [POWERDNS, ['--csk', '--algorithm=ED25519'], /has a key of ECDSAP256SHA256; leave out --algo/],
    [PEM, ['--csk'], /file:1: the key is encrypted; decrypt it with `openssl pkcs8/],
    [
      PEM.replaceAll('ENCRYPTED ', ''),
      ['--csk'],
      /file:1: the file has no valid private key in PEM/,
    ],
    ['pkcs11:token=t;object=k', ['--csk'], /file:1: the key is in a PKCS #11 token/],
    [PEM.replaceAll('ENCRYPTED PRIVATE KEY', 'PKCS#11 PROVIDER URI'), ['--csk'], /PKCS #11 token/],
  ] as const) {
    const { code, errors } = await importText(text, ...more)
    t.equal(code, 1)
    t.match(errors.join('\n'), reason)
    t.notMatch(errors.join('\n'), /secretsecret/)
  }
})

t.test('keys of Knot DNS and OpenSSL', needs('keymgr', 'openssl'), async (t) => {
  const folder = temporaryDirectory(t)
  const store = join(folder, 'keys')
  const kasp = join(folder, 'kasp')
  for (const algorithm of ['RSASHA256', 'ECDSAP256SHA256', 'ECDSAP384SHA384', 'ED25519']) {
    const made = await run('keymgr', [
      '-D',
      kasp,
      ZONE,
      'generate',
      `algorithm=${algorithm}`,
      'ksk=yes',
    ])
    const file = join(kasp, 'keys', `${made.stdout.trim().split('\n').at(-1)}.pem`)
    chmodSync(file, 0o600)
    t.match(
      await keys(folder, 'import', ZONE, file, '--ksk', '-keys', store),
      { code: 0 },
      made.stderr,
    )
  }
  const { stdout } = await run('keymgr', ['-D', kasp, ZONE, 'ds'])
  const { printed } = await keys(folder, 'ds', ZONE, '-keys', store)
  const plain = (line: string): string => line.replace(' IN', '').toLowerCase()
  const theirs = stdout
    .trim()
    .split('\n')
    .filter((line) => / \d+ 2 /.test(line))
  t.strictSame(printed.map(plain).sort(), theirs.map(plain).sort())
  for (const args of [
    ['ecparam', '-name', 'prime256v1', '-genkey', '-noout'],
    ['genrsa', '-traditional', '2048'],
    ['genpkey', '-algorithm', 'ed25519'],
  ]) {
    const file = join(folder, args[0]!)
    writeFileSync(file, (await run('openssl', args)).stdout, { mode: 0o600 })
    t.match(
      await keys(folder, 'import', ZONE, file, '--zsk', '-keys', store),
      { code: 0 },
      args[0]!,
    )
  }
  t.equal((await listed(store)).length, 7)
})

t.test('the DS, and what the parent has', async (t) => {
  const folder = temporaryDirectory(t)
  await keys(folder, 'generate', ZONE, '-keys', folder)
  await keys(folder, 'generate', ZONE, '-keys', folder, '--ksk', '--algorithm', 'ED25519')
  await keys(folder, 'generate', ZONE, '-keys', folder, '--zsk')
  const ds = (...more: string[]) => keys(folder, 'ds', ZONE, '-keys', folder, ...more)
  const { printed } = await ds()
  t.equal(printed.length, 2)
  for (const line of printed) t.match(line, /^example\.org\. IN DS \d+ 1[35] 2 [0-9A-F]{64}$/)
  const long = (await ds('--digest', 'sha-384')).printed
  for (const line of long) t.match(line, /^example\.org\. IN DS \d+ 1[35] 4 [0-9A-F]{96}$/)

  const other = `example.org. IN DS 1 13 2 ${'0'.repeat(64)}`
  let answer: readonly ResourceRecord[] | number = []
  const server = await ScriptedServer.open(t, () => answer)
  const has = (...lines: string[]): Promise<{ printed: string[]; errors: string[] }> => {
    answer = lines.map(recordOf)
    return ds('-parent', server.address)
  }
  const { address } = server
  const [first, second] = printed as [string, string]
  t.strictSame((await has(first, other)).printed, [
    first,
    `; ${address} has a DS of this key`,
    second,
    `; ${address} has no DS of this key`,
    `; ${address} also has a DS that no key matches: ${other}`,
  ])
  t.match((await has(long[0]!)).printed[1], 'has a DS of this key', 'with another digest')
  answer = [recordOf(second)]
  const json = JSON.parse((await ds('-parent', address, '-o', 'json')).printed.join(''))
  t.match(json, { ds: [{ isAtParent: false }, { isAtParent: true }], others: [], parent: address })
  t.match((await has()).errors, [/sent no DS: it does not serve the parent zone/])
  answer = 5
  t.match((await ds('-parent', address)).errors, [/sent no DS: its answer is REFUSED/])
})

t.test('the DS of the parent, also while it should have other ones', async (t) => {
  const folder = temporaryDirectory(t)
  for (const role of ['--ksk', '--ksk', '--zsk'])
    await keys(folder, 'generate', ZONE, '-keys', folder, role)
  const ds = (...more: string[]) => keys(folder, 'ds', ZONE, '-keys', folder, ...more)
  const lines = (await ds()).printed as [string, string]
  const [ksk, nextKsk, zsk] = (await listed(folder)) as [ListedRow, ListedRow, ListedRow]
  let answer: readonly string[] = lines
  const { address } = await ScriptedServer.open(t, () => answer.map(recordOf))
  const used = [rollKey(ksk, 'ksk'), rollKey(zsk, 'zsk')]
  const early = ({ id }: ListedRow, line: string): string =>
    `; ${address} also has a DS of ${id}, which it should not have now: ${line}`

  storeState(folder, used, { ds: settled([], SECONDS) })
  t.match(await ds('-parent', address), {
    code: 0,
    printed: [
      '; the parent should have no DS of example.org. now; sextant keys list shows the next step',
      early(ksk, lines[0]),
      early(nextKsk, lines[1]),
    ],
  })
  const { printed } = await ds('-parent', address, '-o', 'json')
  t.strictSame(JSON.parse(printed.join('')), { ds: [], parent: address, others: lines })

  answer = [`other.${lines[0]}`]
  t.match((await ds('-parent', address)).printed, [/should have no DS/, `; ${address} has no DS`])

  answer = lines
  storeState(folder, used)
  t.strictSame((await ds('-parent', address)).printed, [
    lines[0],
    `; ${address} has a DS of this key`,
    early(nextKsk, lines[1]),
  ])
})

const SECONDS = Math.floor(Date.now() / 1000)
const [HOUR, DAY] = [3600, 86_400]

/** Stores a state in which the first KSK or CSK is in use, and `timelines` replace what is so. */
function storeState(
  folder: string,
  keys: readonly RollKey[],
  timelines: Partial<Record<TimelineName, Timeline>> = {},
): void {
  const split = keys.some(({ role }) => role === 'zsk')
  const layout = { split, algorithm: 13 }
  const ids = (...roles: string[]): string[] =>
    keys.filter((key) => roles.includes(key.role) && key.isWanted).map(({ id }) => id)
  const text = printRollState({
    configured: layout,
    wanted: layout,
    isSigned: true,
    askedSeconds: 0,
    keys,
    dnskey: settled(ids('csk', 'ksk', 'zsk').sort(), SECONDS - DAY),
    signers: settled(ids('csk', 'zsk'), SECONDS - DAY),
    ds: settled(ids('csk', 'ksk'), SECONDS - DAY),
    claim: undefined,
    requests: [],
    ...timelines,
  })
  writeFileSync(join(folder, 'rolls-example.org.state'), text)
}

function rollKey({ id }: ListedRow, role: RollKey['role'], isWanted = true): RollKey {
  return { id, role, algorithm: 13, isWanted, sinceSeconds: SECONDS - DAY }
}

t.test('the states of keys in a roll', async (t) => {
  const folder = temporaryDirectory(t)
  const place = ['-keys', folder]
  for (const role of ['--ksk', '--ksk', '--zsk', '--zsk'])
    await keys(folder, 'generate', ZONE, ...place, role)
  const [ksk, nextKsk, zsk, nextZsk] = (await listed(folder)) as [
    ListedRow,
    ListedRow,
    ListedRow,
    ListedRow,
  ]
  const states = async () => (await listed(folder)).map(({ state }) => state)
  const used = [rollKey(ksk, 'ksk'), rollKey(zsk, 'zsk')]
  storeState(folder, used)
  t.strictSame(await states(), ['active', 'unused', 'active', 'unused'])

  const [all, until] = [[ksk.id, zsk.id, nextZsk.id].sort(), SECONDS + HOUR]
  const older = [
    { keys: [ksk.id, zsk.id].sort(), sinceSeconds: SECONDS - DAY, untilSeconds: until },
  ]
  const dnskey = { keys: all, sinceSeconds: SECONDS, isKnown: true, ttlSeconds: HOUR, older }
  storeState(folder, [rollKey(ksk, 'ksk'), rollKey(zsk, 'zsk', false), rollKey(nextZsk, 'zsk')], {
    dnskey,
    signers: settled([zsk.id], SECONDS - DAY),
  })
  t.strictSame(await states(), ['active', 'unused', 'retiring', 'published'])
  const { printed } = await keys(folder, 'list', ZONE, ...place, '-o', 'wide')
  const time = new Date(until * 1000).toISOString().slice(0, 19)
  for (const line of printed.slice(1)) t.ok(line.includes(time), line)
  t.match(printed[1], /sign with/i)

  const both = [ksk.id, nextKsk.id].sort()
  storeState(folder, [rollKey(ksk, 'ksk', false), rollKey(nextKsk, 'ksk'), rollKey(zsk, 'zsk')], {
    dnskey: settled([...both, zsk.id].sort(), SECONDS - DAY),
    ds: {
      ...settled(both, SECONDS - HOUR),
      isKnown: false,
      older: [{ ...older[0]!, keys: [ksk.id] }],
    },
  })
  t.strictSame(await states(), ['retiring', 'ready', 'active', 'unused'])
  t.equal((await keys(folder, 'ds', ZONE, ...place)).printed.length, 2, 'both DS')
  const seen = { ...settled([ksk.id], SECONDS), older: [{ ...older[0]!, keys: [] }] }
  storeState(folder, used, { ds: seen })
  const [, row = ''] = (await keys(folder, 'list', ZONE, ...place)).printed
  t.ok(row.endsWith(`  ${time}Z  wait until no cache has older answers for DS`), row)
  storeState(folder, used, { ds: settled([], SECONDS) })
  for (const more of [[], ['--published']]) {
    t.match((await keys(folder, 'ds', ZONE, ...more, ...place)).errors, [
      /should have no DS of example\.org\. now/,
    ])
  }
  writeFileSync(join(folder, 'rolls-example.org.state'), 'x\n')
  t.match((await keys(folder, 'list', ZONE, ...place)).errors, [
    /the state of key rolls must begin/,
  ])
})

t.test('requests that a server will carry out', async (t) => {
  const folder = temporaryDirectory(t)
  const act = (...argv: string[]) => keys(folder, ...argv, '-keys', folder)
  for (const role of ['--ksk', '--zsk', '--zsk']) await act('generate', ZONE, role)
  const [ksk, zsk, spare] = (await listed(folder)) as [ListedRow, ListedRow, ListedRow]
  const retired = await act('retire', ZONE, spare.id)
  t.strictSame(retired.printed, [`${spare.id} is retired`], 'no server uses it')
  t.equal((await listed(folder)).length, 2)
  storeState(folder, [rollKey(ksk, 'ksk'), rollKey(zsk, 'zsk')])
  for (const [argv, line] of [
    [['roll', ZONE, '--zsk'], 'request roll zsk'],
    [['roll', ZONE, '--ksk'], 'request roll ksk'],
    [['roll', ZONE, '--zsk'], 'request roll zsk'],
    [['roll', ZONE, '--algorithm', 'ed25519'], 'request layout split ED25519'],
    [['roll', ZONE, '--delegation', 'unsigned'], 'request delegation unsigned'],
    [['retire', ZONE, String(zsk.tag)], `request retire ${zsk.id}`],
    [['ds', ZONE, '--published'], `request published ${ksk.id}`],
  ] as const) {
    t.match(await act(...argv), { code: 0, printed: [`the server will carry out: ${line}`] })
  }
  await t.test('a confirmation before all servers have the CDS', async (t) => {
    const path = join(folder, 'rolls-example.org.state')
    const before = readFileSync(path, 'utf8')
    for (const [time, fault] of [
      ['pending', /may still follow older CDS of example.org.; confirm after that/],
      ['2099-01-01T00:00:00Z', /older CDS of example.org. until 2099-01-01T00:00:00/],
    ] as const) {
      writeFileSync(path, before.replace(/^cds .*$/m, `cds ${time}`))
      t.match((await act('ds', ZONE, '--published')).errors, [fault])
    }
    writeFileSync(path, before)
  })
  const text = readFileSync(join(folder, 'rolls-example.org.state'), 'utf8')
  const requests = scanRollState(text).requests.map(({ kind }) => kind)
  t.strictSame(requests, ['roll', 'roll', 'layout', 'delegation', 'retire', 'published'])
  const { printed } = await act('list', ZONE)
  t.ok(printed.includes('example.org. request roll zsk'))
  t.match((await act('roll', ZONE, '--csk')).errors, [/has a KSK and a ZSK, and no CSK/])
  t.match((await act('roll', ZONE, '--algorithm=13')).errors, [/keys of this algorithm already/])
})

function recordOf(line: string): ResourceRecord {
  const [owner = '', , , ...fields] = line.split(' ')
  const rdata = scanRdata(RRType.DS, splitFields(fields.join(' '))!, ROOT_NAME)
  if (rdata instanceof RdataError) throw rdata
  return { owner: scanName(owner)!, type: RRType.DS, rrclass: RRClass.IN, ttlSeconds: 60, rdata }
}
