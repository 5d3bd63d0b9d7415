import t from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import { HMAC_SHA256 } from '../../../src/dns/tsig/algorithm.ts'
import { createTsigKey, type TsigKey } from '../../../src/dns/tsig/key.ts'
import { askNameserver, type ZoneAnswer } from '../../../src/operator/zones/ask-zone.ts'
import { type Script, ScriptedServer } from '../../support/scripted-server.ts'

const NAMES = Uint8Array.of(0, 0)

/** Answers an SOA query for one of these names, and refuses the others. */
function serving(...zones: readonly string[]): Script {
  return ({ question }) => {
    const name = printName(question!.name)
    if (!zones.includes(name)) return Rcode.REFUSED
    const rdata = Buffer.concat([NAMES, new Uint8Array(20)])
    const owner = scanName(name)!
    return [{ owner, type: RRType.SOA, rrclass: RRClass.IN, ttlSeconds: 60, rdata }]
  }
}

/** Refuses all zones except kdrnt. */
function atKdrnt(answer: Script): Script {
  return (query, isTcp) =>
    printName(query.question!.name) === 'kdrnt.' ? answer(query, isTcp) : Rcode.REFUSED
}

interface Row {
  readonly name: string
  readonly script: Script
  readonly key?: TsigKey
  readonly want: ZoneAnswer
}

const KEY = createTsigKey(scanName('key.')!, HMAC_SHA256, new Uint8Array(32))

t.test('what a nameserver says of a zone', async (t) => {
  const rows: readonly Row[] = [
    { name: 'a nameserver', script: serving('k.example.', 'kdrnt.'), want: 'served' },
    {
      name: 'an exchange',
      script: serving('kdrnt.'),
      want: { refusal: 'REFUSED', hasRecords: true },
    },
    { name: 'another server', script: serving(), want: { refusal: 'REFUSED', hasRecords: false } },
    { name: 'no data', script: () => [], want: { refusal: 'no SOA', hasRecords: false } },
    { name: 'SERVFAIL', script: () => Rcode.SERVFAIL, want: 'silent' },
    { name: 'kdrnt: SERVFAIL', script: atKdrnt(() => Rcode.SERVFAIL), want: 'silent' },
    { name: 'kdrnt: another key', script: atKdrnt(() => Rcode.NOTAUTH), want: 'silent' },
    {
      name: 'kdrnt: another key, signed',
      script: atKdrnt(() => Rcode.NOTAUTH),
      key: KEY,
      want: 'silent',
    },
    { name: 'kdrnt: no answer', script: atKdrnt(() => undefined), want: 'silent' },
    {
      name: 'kdrnt: no data',
      script: atKdrnt(() => []),
      want: { refusal: 'REFUSED', hasRecords: false },
    },
    {
      name: 'without TSIG',
      script: serving(),
      key: KEY,
      want: { refusal: 'REFUSED', hasRecords: false },
    },
    { name: 'an exchange without TSIG', script: serving('kdrnt.'), key: KEY, want: 'silent' },
  ]
  for (const { name, script, key, want } of rows) {
    const { host, port } = await ScriptedServer.open(t, script)
    const { signal } = new AbortController()
    const answer = await askNameserver({ host, port }, 'k.example', { key, signal })
    t.strictSame(answer, want, name)
  }
})
