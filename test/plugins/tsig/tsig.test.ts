import { execFileSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import t, { type Test } from 'tap'
import { Opcode, Rcode, RRType } from '../../../src/dns/iana/index.ts'
import { parseQuery } from '../../../src/dns/message/parse-query.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { scanAlgorithm } from '../../../src/dns/tsig/algorithm.ts'
import { createTsigKey } from '../../../src/dns/tsig/key.ts'
import { readKeyFile } from '../../../src/dns/tsig/key-file.ts'
import { RequestSigner } from '../../../src/dns/tsig/request-signer.ts'
import { tsig } from '../../../src/plugins/tsig/setup.ts'
import { followerOf, SetUp, setupError } from '../../support/setup.ts'
import { answering, transaction } from '../../support/transaction.ts'
import { wireQuery } from '../../support/wire.ts'

const SECRET = 'NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk='
const NEXT = answering((tx) => {
  tx.response.answeredBy = 'next'
  return 0
})

interface Asked {
  readonly name?: string
  readonly type?: number
  readonly opcode?: number
  /** Secret that it is signed with; undefined = it is not. */
  readonly secret?: string
}

async function ask(c: SetUp, { name = 'www.example.org', secret, ...rest }: Asked) {
  const flags = (rest.opcode ?? 0) << 11
  const plain = wireQuery({ name, type: rest.type ?? RRType.A, flags })
  const key = createTsigKey(
    scanName('k.example.')!,
    scanAlgorithm('hmac-sha256')!,
    Buffer.from(secret ?? 'none', 'base64'),
  )
  const seconds = Math.floor(c.clock.now() / 1000)
  const packet = secret === undefined ? plain : new RequestSigner(key).sign(plain, seconds)
  const tx = transaction({ name })
  parseQuery(tx.query, packet, packet.length)
  tx.response.reset(tx.query)
  const status = await c.handler(NEXT).serve(tx)
  return { status, tx, by: tx.response.answeredBy, key: tx.tsigKey?.nameText }
}

async function started(t: Test, lines: string): Promise<SetUp> {
  const c = new SetUp(tsig, `tsig {\n${lines}\n}`)
  t.teardown(() => c.stop())
  await c.start()
  return c
}

t.test('a good signature lets a query on, and has the reply signed', async (t) => {
  const c = await started(t, `secret k.example. ${SECRET}`)
  const { status, by, key, tx } = await ask(c, { secret: SECRET })
  t.equal(status, 0)
  t.equal(by, 'next')
  t.equal(key, 'k.example.')
  t.not(tx.response.signer, null)
})

t.test('a bad one is NOTAUTH, and goes nowhere', async (t) => {
  const c = await started(t, `secret k.example. ${SECRET}`)
  const { status, by, key, tx } = await ask(c, { secret: 'AAAA' })
  t.equal(status, Rcode.NOTAUTH)
  t.equal(tx.response.rcode, Rcode.NOTAUTH)
  t.equal(by, 'tsig')
  t.equal(key, undefined)
  t.not(tx.response.signer, null, 'says why')
  t.equal(tx.response.error, 'TSIG: BADSIG')
})

t.test('a data thread knows the keys too', async (t) => {
  const corefile = `tsig {\nsecret k.example. ${SECRET}\n}`
  const c = await started(t, `secret k.example. ${SECRET}`)
  const follower = followerOf(c, tsig, corefile)
  t.equal((await ask(follower, { secret: SECRET })).key, 'k.example.')
})

t.test('elsewhere signatures are passed over', async (t) => {
  const c = await started(t, `secret k.example. ${SECRET}`)
  const { by, key, tx } = await ask(c, { name: 'www.example.com', secret: 'AAAA' })
  t.equal(by, 'next')
  t.equal(key, undefined)
  t.equal(tx.response.signer, null)
})

const REQUIRED = [
  { lines: '', given: {}, want: 0 },
  { lines: 'require all', given: {}, want: Rcode.REFUSED },
  { lines: 'require none', given: {}, want: 0 },
  { lines: 'require AXFR IXFR', given: {}, want: 0 },
  { lines: 'require AXFR IXFR', given: { type: RRType.IXFR }, want: Rcode.REFUSED },
  { lines: 'require A', given: { secret: SECRET }, want: 0 },
  { lines: 'require all', given: { opcode: Opcode.NOTIFY }, want: 0 },
  { lines: 'require_opcode NOTIFY', given: { opcode: Opcode.NOTIFY }, want: Rcode.REFUSED },
  { lines: 'require_opcode NOTIFY', given: {}, want: 0 },
  { lines: 'require_opcode all', given: {}, want: Rcode.REFUSED },
  { lines: 'require_opcode none', given: {}, want: 0 },
]
for (const { lines, given, want } of REQUIRED) {
  t.test(`${lines}: ${JSON.stringify(given)}`, async (t) => {
    const c = await started(t, `secret k.example. ${SECRET}\n${lines}`)
    t.equal((await ask(c, given)).status, want)
  })
}

const FAULTS = [
  { lines: 'secret', want: 'secret needs NAME KEY' },
  { lines: `secret k ${SECRET} hmac-sha256 more`, want: 'secret needs NAME KEY' },
  { lines: 'secret k not+base64', want: 'the secret is not base64' },
  { lines: 'secret k ""', want: 'the secret is not base64' },
  { lines: `secret a..b ${SECRET}`, want: 'the name of the secret is not a domain name' },
  { lines: `secret k ${SECRET} hmac-md5`, want: 'the algorithm must be one of hmac-sha1, ' },
  { lines: 'secrets', want: 'secrets needs the path of one file of keys' },
  { lines: 'require', want: 'Wrong argument count' },
  { lines: 'require NONSENSE', want: "unknown query type 'NONSENSE'" },
  { lines: 'require_opcode NONSENSE', want: "unknown opcode 'NONSENSE'" },
  { lines: 'nonsense', want: "unknown property 'nonsense'" },
]
for (const { lines, want } of FAULTS) {
  t.test(`the Corefile says: ${lines}`, async (t) => {
    const error = setupError(tsig, `tsig {\n${lines}\n}`)
    t.match(error, want)
    t.notMatch(error, SECRET.slice(0, 20), 'and does not contain the secret')
    t.notMatch(error, 'not+base64')
  })
}

const NOWHERE = { file: 'Corefile', line: 1 }
const FILE = `# comment
key "one.example." { algorithm hmac-sha512; secret "AAAA"; };
/* several
   lines */ key two.example. { secret ${SECRET}; }; // end
`

t.test('a file of keys', async (t) => {
  const keys = readKeyFile(`${t.testdir({ keys: FILE })}/keys`, NOWHERE)
  t.strictSame(
    keys.map(({ algorithm, secret }) => [algorithm, Buffer.from(secret).toString('base64')]),
    [
      ['hmac-sha512', 'AAAA'],
      ['hmac-sha256', SECRET],
    ],
  )
})

const BAD_FILES = [
  { text: 'zone "x" {};', want: 'keys:1: a key begins with' },
  { text: 'key a {', want: 'keys:1: } is missing at the end' },
  { text: 'key a {\n secret "#";\n};', want: 'keys:2: the secret is not base64' },
  { text: 'key a {\n\n algorithm none;\n};', want: 'keys:3: the algorithm must be one of' },
  { text: 'key a { };', want: 'keys:1: the key has no secret' },
  { text: 'key a { secret AAAA };', want: "keys:1: ';' is missing" },
  { text: 'key a { hidden AAAA; };', want: 'keys:1: a key has `algorithm` and `secret`' },
  {
    text: 'key a { secret AAAA; };\nkey A { secret BBBB; };',
    want: 'keys:2: the key appears twice',
  },
  { text: 'key a..b { secret AAAA; };', want: 'keys:1: the name of the key is not a domain name' },
]
for (const { text, want } of BAD_FILES) {
  t.test(`a file of keys: ${JSON.stringify(text)}`, async (t) => {
    const dir = t.testdir({ keys: text })
    let printed = ''
    try {
      readKeyFile(`${dir}/keys`, NOWHERE)
    } catch (error) {
      printed = (error as { print: () => string }).print()
    }
    t.match(printed, want)
    t.notMatch(printed.replace(dir, ''), /AAAA|BBBB/)
  })
}

t.test('keys of a file are used, and a file that all users may read is logged', async (t) => {
  const dir = t.testdir({ keys: `key k.example. { secret "${SECRET}"; };` })
  chmodSync(`${dir}/keys`, 0o644)
  const c = await started(t, `secrets ${dir}/keys`)
  t.equal((await ask(c, { secret: SECRET })).key, 'k.example.')
  t.match(c.lines.join(), 'any user of this machine can read the secrets')
  t.notMatch(c.lines.join(), SECRET)
  chmodSync(`${dir}/keys`, 0o600)
  t.strictSame(await c.check(), { faults: [], warnings: [] })
})

t.test('a key twice, or a file that does not exist, stops the start', async (t) => {
  const dir = t.testdir({ keys: `key k.example. { secret "${SECRET}"; };` })
  const twice = new SetUp(tsig, `tsig {\nsecret K.example. ${SECRET}\nsecrets ${dir}/keys\n}`)
  await t.rejects(twice.start(), { message: 'the key k.example. appears twice; remove one' })
  const missing = new SetUp(tsig, `tsig {\nsecrets ${dir}/none\n}`)
  const want = { message: /can't read keys from .*none: ENOENT/, position: { line: 2 } }
  await t.rejects(missing.start(), want)
  t.match((await missing.check()).faults, [/:2: can't read keys/])
  t.test('a pipe or a directory does not hold up the start', async (t) => {
    execFileSync('mkfifo', [`${dir}/pipe`])
    for (const path of [`${dir}/pipe`, dir, '/dev/zero']) {
      const odd = new SetUp(tsig, `tsig {\nsecrets ${path}\n}`)
      await t.rejects(odd.start(), {
        message: /: it is not a regular file$/,
        position: { line: 2 },
      })
    }
  })
})
