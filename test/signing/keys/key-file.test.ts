import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { InputError } from '../../../src/base/errors.ts'
import { Algorithm, scanAlgorithm } from '../../../src/dns/dnssec/algorithms.ts'
import {
  FLAGS_KSK,
  FLAGS_ZSK,
  generatePrivateKey,
  signingKey,
} from '../../../src/dns/dnssec/dnskey.ts'
import { signSet, verifySet } from '../../../src/dns/dnssec/rrsig.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import { readKeyFile } from '../../../src/signing/keys/key-file.ts'
import { fileNameOf, keyId, scanKeyId } from '../../../src/signing/keys/key-name.ts'
import { printPrivateText, scanPrivateText } from '../../../src/signing/keys/private-text.ts'
import { printPublicText, scanPublicText } from '../../../src/signing/keys/public-text.ts'
import { needs, run } from '../../support/peer.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

/** RFC 6605 sections 6.1 and 6.2, RFC 8080 section 6.1. */
const SAMPLES = [
  {
    algorithm: 13,
    tag: 55648,
    dnskey:
      '257 3 13 GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA==',
    secret: 'GU6SnQ/Ou+xC5RumuIUIuJZteXT2z0O/ok1s38Et6mQ=',
  },
  {
    algorithm: 14,
    tag: 10771,
    dnskey:
      '257 3 14 xKYaNhWdGOfJ+nPrL8/arkwf2EY3MDJ+SErKivBVSum1w/egsXvSADtNJhyem5RCOpgQ6K8X1DRSEkrbYQ+OB+v8/uX45NBwY8rp65F6Glur8I/mlVNgF6W/qTI37m40',
    secret: 'WURgWHCcYIYUPWgeLmiPY2DJJk02vgrmTfitxgqcL4vwW7BOrbawVmVe0d9V94SR',
  },
  {
    algorithm: 15,
    tag: 3613,
    dnskey: '257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=',
    secret: 'ODIyNjAzODQ2MjgwODAxMjI2NDUxOTAyMDQxNDIyNjI=',
  },
] as const
const [P256] = SAMPLES

/** Writes `K.key` and `K.private`; returns their path without the ending. */
function keyFiles(
  t: Test,
  {
    publicText = `example.net. IN DNSKEY ${P256.dnskey}\n`,
    privateText = privateTextOf(P256),
    mode = 0o600,
  },
): string {
  const base = join(temporaryDirectory(t), 'K')
  writeFileSync(`${base}.key`, publicText)
  writeFileSync(`${base}.private`, privateText)
  chmodSync(`${base}.private`, mode)
  return base
}

function privateTextOf({ algorithm, secret }: { algorithm: number; secret: string }): string {
  return `Private-key-format: v1.2\nAlgorithm: ${algorithm} (X)\nPrivateKey: ${secret}\n`
}

t.test('the keys of RFC 6605 and RFC 8080, and their texts', async (t) => {
  for (const sample of SAMPLES) {
    const publicText = `; comment\nexample.net. 3600 IN DNSKEY ( ${sample.dnskey} ) ; key\n`
    const base = keyFiles(t, { publicText, privateText: privateTextOf(sample) })
    for (const ending of ['', '.key', '.private']) {
      const key = readKeyFile(`${base}${ending}`)
      t.equal(printName(key.zone), 'example.net.')
      t.match(key, { algorithm: sample.algorithm, tag: sample.tag, flags: FLAGS_KSK, times: {} })
      const about = `; This is a key-signing key, keyid ${sample.tag}, for example.net.`
      t.equal(printPublicText(key), `${about}\nexample.net. IN DNSKEY ${sample.dnskey}\n`)
      t.ok(printPrivateText(key).includes(`PrivateKey: ${sample.secret}\n`))
    }
  }
})

t.test('keys of all algorithms are the same after printing and scanning', async (t) => {
  const times = { Created: 1_700_000_000, Publish: 1_700_000_001, Delete: 1_800_000_000 }
  for (const algorithm of [8, 10, 13, 14, 15]) {
    for (let i = 0; i < (algorithm < 13 ? 1 : 20); i++) {
      const privateKey = await generatePrivateKey(algorithm)
      const text = printPrivateText({ algorithm, privateKey, times })
      t.match(text, /\nCreated: 20231114221320\nPublish: 20231114221321\nDelete: \d{14}\n$/)
      const scanned = scanPrivateText(text, 'f')
      t.ok(scanned.privateKey.equals(privateKey), `algorithm ${algorithm}`)
      t.strictSame(scanned.times, times)
      const { dnskey } = signingKey(privateKey, algorithm, FLAGS_ZSK)
      const zone = scanName('a\\;b\\046.\\032x.example.')!
      t.strictSame(scanPublicText(printPublicText({ zone, dnskey }), 'f'), { zone, dnskey })
    }
  }
})

const KEY = `example.net. IN DNSKEY ${P256.dnskey}\n`
const FAULTS: readonly [string, Parameters<typeof keyFiles>[1], RegExp][] = [
  ['others read', { mode: 0o604 }, /other users can read .*0604; run chmod 600 .*K\.private/],
  ['the group reads', { mode: 0o640 }, /other users can read .*; run chmod 600/],
  ['the group writes', { mode: 0o620 }, /other users can read .*; run chmod 600/],
  ['no record', { publicText: '; nothing\n' }, /K\.key:1: the file has no DNSKEY record/],
  ['two records', { publicText: KEY + KEY }, /K\.key:2: the file has two records/],
  ['another type', { publicText: 'a. IN A 192.0.2.1\n' }, /K\.key:1: the record must be OWNER/],
  ['a cut record', { publicText: 'a. IN DNSKEY 257 3 13\n' }, /K\.key:1: DNSKEY: /],
  ['an open parenthesis', { publicText: 'a. IN DNSKEY (\n' }, /K\.key:1: /],
  ['flags', { publicText: KEY.replace('257', '0') }, /flags of the DNSKEY are 0; .* 256 or 257/],
  ['protocol', { publicText: KEY.replace(' 3 ', ' 2 ') }, /protocol of the DNSKEY is 2/],
  ['a short key', { publicText: KEY.replace(/13 .*/, '13 AAAA') }, /no valid public key/],
  ['SHA-1', { publicText: KEY.replace('3 13', '3 5') }, /RSASHA1 is not supported; use one of RSA/],
  ['an unknown algorithm', { publicText: KEY.replace('3 13', '3 99') }, /algorithm 99 is not supp/],
  ['an empty file', { privateText: '' }, /K\.private:1: .* no line Private-key-format/],
  ['other content', { privateText: 'secret\n' }, /K\.private:1: .* WORD: VALUE/],
  ['version 2', { privateText: 'Private-key-format: v2.0\n' }, /the version must be v1.2 or v1.3/],
  ['no algorithm', { privateText: 'Private-key-format: v1.3\n' }, /line Algorithm is missing/],
  [
    'an algorithm without a number',
    { privateText: 'Private-key-format: v1.3\nAlgorithm: ED25519\n' },
    /private:2: Algorithm must begin with a number/,
  ],
  [
    'an algorithm that is not supported',
    { privateText: privateTextOf({ algorithm: 3, secret: P256.secret }) },
    /private:2: algorithm DSA is not supported/,
  ],
  [
    'another algorithm',
    { privateText: privateTextOf(SAMPLES[1]) },
    /private:1: the private key does not belong to the DNSKEY with tag 55648/,
  ],
  [
    'another key',
    { privateText: privateTextOf(P256).replace('GU6S', 'GU6T') },
    /private:1: the private key does not belong to the DNSKEY with tag 55648/,
  ],
  [
    'a field twice',
    { privateText: `${privateTextOf(P256)}PrivateKey: AA==\n` },
    /private:4: .*twice/,
  ],
  ['no base64', { privateText: privateTextOf(P256).replace('GU', '*') }, /private:3: .* base64/],
  ['no key', { privateText: privateTextOf(P256).replace(/PrivateKey.*\n/, '') }, /is missing/],
  [
    'a long key',
    { privateText: privateTextOf({ ...P256, secret: SAMPLES[1].secret }) },
    /private:3: PrivateKey must have 32 octets/,
  ],
  [
    'zero',
    { privateText: privateTextOf({ ...P256, secret: Buffer.alloc(32).toString('base64') }) },
    /not a valid key of the curve/,
  ],
  [
    'a time',
    { privateText: `${privateTextOf(P256)}Publish: 20261301000000\n` },
    /private:4: Publish/,
  ],
  [
    'PKCS #11',
    { privateText: 'Private-key-format: v1.3\nAlgorithm: 13\nEngine: cGtjczEx\nLabel: eA==\n' },
    /private:3: the key is in a PKCS #11 token/,
  ],
  ['a large file', { privateText: 'x'.repeat(70_000) }, /larger than 65536 octets/],
]

t.test('key files that are refused, and no message has a secret', async (t) => {
  for (const [what, files, reason] of FAULTS) {
    const message = faultOf(keyFiles(t, files))
    t.match(message, reason, what)
    for (const { secret } of SAMPLES) t.notOk(message.includes(secret.slice(4, 12)), what)
  }
})

function faultOf(path: string): string {
  try {
    readKeyFile(path)
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return error.print()
  }
  return ''
}

t.test('what is not a file, and links to files', async (t) => {
  const base = keyFiles(t, {})
  const other = join(temporaryDirectory(t), 'L')
  t.match(faultOf(other), /can't read .*L\.key: ENOENT/)
  mkdirSync(`${other}.key`)
  t.match(faultOf(other), /L\.key is not a regular file/)
  const linked = join(temporaryDirectory(t), 'S')
  for (const ending of ['key', 'private']) symlinkSync(`${base}.${ending}`, `${linked}.${ending}`)
  t.equal(faultOf(linked), '', 'as in the volume of a Secret')
  chmodSync(`${base}.private`, 0o644)
  t.match(faultOf(linked), /other users can read/, 'the mode of the file counts')
  chmodSync(`${base}.private`, 0o600)
  chmodSync(`${base}.key`, 0o666)
  t.match(faultOf(base), /any user can write .*K\.key, its mode is 0666; run chmod o-w/)
})

t.test('file names cannot leave their folder', async (t) => {
  for (const [zone, name] of [
    ['.', '.'],
    ['Example.ORG', 'example.org.'],
    ['a/b.\\$c.\\032x.E\\"*._tcp.Org', 'a%2Fb.%24c.%20x.e%22%2A._tcp.org.'],
    ['\\.\\./\\.\\./etc.\\000', '%2E%2E%2F%2E%2E%2Fetc.%00.'],
    ['\\195\\164', '%C3%A4.'],
  ] as const) {
    t.equal(fileNameOf(scanName(zone)!), name)
    const id = keyId(scanName(zone)!, 8, 5)
    t.equal(id, `K${name}+008+00005`)
    t.strictSame(scanKeyId(id), { zone: name, algorithm: 8, tag: 5 })
  }
  for (const id of ['', 'K', 'Kx.+013+1', 'x.+013+00001', 'Kx.+013+00001.key', 'Kx.\n+013+00001'])
    t.equal(scanKeyId(id), undefined, id)
})

/** Makes one key; returns the id that the tool printed. */
async function generate(tool: string, args: readonly string[], cwd: string): Promise<string> {
  const script = 'cd "$1" && shift && exec "$@"'
  const { stdout, stderr } = await run('sh', ['-c', script, 'sh', cwd, tool, ...args])
  const [id] = /^K\S+/m.exec(stdout) ?? []
  if (id === undefined) throw new Error(stderr)
  return id
}

const ALGORITHMS = ['RSASHA256', 'RSASHA512', 'ECDSAP256SHA256', 'ECDSAP384SHA384', 'ED25519']
const PRIVATE_OCTETS: ReadonlyMap<number, number> = new Map([
  [Algorithm.EcdsaP256, 32],
  [Algorithm.EcdsaP384, 48],
])
const TOOLS = [
  {
    tool: 'dnssec-keygen',
    args: ['-q', '-b', '1024', '-I', '20300101000000'],
    ksk: ['-f', 'KSK', '-L', '300'],
  },
  { tool: 'ldns-keygen', args: ['-r', '/dev/urandom'], ksk: ['-k'] },
] as const

/** The tools leave out zeros at the start of one private key of ECDSA in 256. */
function padPrivateKey(text: string, algorithm: number): string {
  const octets = PRIVATE_OCTETS.get(algorithm)
  if (octets === undefined) return text
  return text.replace(/^(PrivateKey: )(.*)$/m, (_, start: string, base64: string) => {
    const key = Buffer.from(base64, 'base64')
    return start + Buffer.concat([Buffer.alloc(octets - key.length), key]).toString('base64')
  })
}

for (const { tool, args, ksk } of TOOLS) {
  t.test(`keys of ${tool}`, needs(tool), async (t) => {
    const folder = temporaryDirectory(t)
    for (const algorithm of ALGORITHMS) {
      for (const more of [[], ksk]) {
        const id = await generate(tool, [...args, ...more, '-a', algorithm, 'Example.Org'], folder)
        const key = readKeyFile(join(folder, id))
        t.equal(key.flags, more.length > 0 ? FLAGS_KSK : FLAGS_ZSK)
        t.equal(key.algorithm, scanAlgorithm(algorithm))
        t.equal(keyId(key.zone, key.algorithm, key.tag).toLowerCase(), id.toLowerCase())
        if (tool === 'dnssec-keygen') t.equal(key.times.Inactive, Date.UTC(2030, 0) / 1000)
        const text = padPrivateKey(
          readFileSync(join(folder, `${id}.private`), 'utf8'),
          key.algorithm,
        )
        const line = `Algorithm: ${key.algorithm} (${algorithm})`
        const printed = text.replace('v1.2', 'v1.3').replace(/^Algorithm:.*/m, line)
        t.equal(printPrivateText(key), printed, 'the text of the tool')
        const set = { owner: key.zone, type: 1, ttlSeconds: 60, rdata: [new Uint8Array(4)] }
        const signature = signSet(set, key, key.zone, { inceptionSeconds: 1, expirationSeconds: 2 })
        t.ok(verifySet(set, signature, key.dnskey))
      }
    }
  })
}
