import t from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
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

t.test('what a nameserver says of a zone', async (t) => {
  for (const { name, script, want } of [
    { name: 'a nameserver', script: serving('k.example.', 'kdrnt.'), want: 'served' },
    {
      name: 'an exchange',
      script: serving('kdrnt.'),
      want: { refusal: 'REFUSED', hasRecords: true },
    },
    { name: 'another server', script: serving(), want: { refusal: 'REFUSED', hasRecords: false } },
    { name: 'no data', script: () => [], want: { refusal: 'no SOA', hasRecords: false } },
    { name: 'SERVFAIL', script: () => Rcode.SERVFAIL, want: 'silent' },
  ] satisfies { name: string; script: Script; want: ZoneAnswer }[]) {
    const { host, port } = await ScriptedServer.open(t, script)
    const { signal } = new AbortController()
    const answer = await askNameserver({ host, port }, 'k.example', { key: undefined, signal })
    t.strictSame(answer, want, name)
  }
})
