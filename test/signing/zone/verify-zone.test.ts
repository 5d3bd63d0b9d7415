import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { RRType } from '../../../src/dns/iana/types.ts'
import { NameBuffer } from '../../../src/dns/name/hashed-name.ts'
import type { SigningPolicy } from '../../../src/signing/zone-keys.ts'
import { encodeSteering, NO_POLICY } from '../../../src/steering/encode.ts'
import { VersionCursor } from '../../../src/xfr/journal/version-cursor.ts'
import { needs, run } from '../../support/peer.ts'
import { printRecord } from '../../support/print-zone.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { wire } from '../../support/zone-text.ts'
import { APEX, SigningStage } from './signing-stage.ts'

const NS = [wire('ns.example.'), wire('ns.other.')]
const A = (...last: number[]) => last.map((octet) => Uint8Array.from([192, 0, 2, octet]))
const DS = [Uint8Array.from([1, 2, 13, 2, ...Array.from({ length: 32 }, (_, i) => i)])]

/** A zone with all that matters to proofs of absence. */
function fill(stage: SigningStage): void {
  stage.put('example.', RRType.NS, NS)
  stage.put('ns.example.', RRType.A, A(1))
  stage.put('*.wild.example.', RRType.A, A(2))
  stage.put('a.b.c.example.', RRType.A, A(3))
  stage.put('unsigned.example.', RRType.NS, [wire('ns.unsigned.example.')])
  stage.put('ns.unsigned.example.', RRType.A, A(4))
  stage.put('signed.example.', RRType.NS, NS)
  stage.put('signed.example.', RRType.DS, DS)
  stage.put('deep.below.empty.example.', RRType.NS, NS)
  stage.put('dname.example.', RRType.DNAME, [wire('other.')])
  stage.put('alias.example.', RRType.CNAME, [wire('Ns.Example.')])
  stage.put('mail.example.', RRType.MX, [Uint8Array.from([0, 10, ...wire('ns.example.')])])
  stage.put('\\000\\255.example.', RRType.TXT, [Uint8Array.from([2, 0x61, 0x62])])
  const tier = [0, 1].map((index) => ({ weight: 1 + index, ttlSeconds: 30, rdataIndexes: [index] }))
  stage.put('geo.example.', RRType.A, A(7, 8), 300, encodeSteering(NO_POLICY, [tier]))
}

/** Changes of names of all kinds. */
function edit(stage: SigningStage): void {
  stage.remove('a.b.c.example.', RRType.A)
  stage.put('d.b.c.example.', RRType.A, A(5))
  stage.remove('unsigned.example.', RRType.NS)
  stage.put('wild.example.', RRType.NS, NS)
  stage.put('example.', RRType.A, A(6))
  stage.remove('signed.example.', RRType.DS)
  stage.remove('dname.example.', RRType.DNAME)
  stage.put('x.dname.example.', RRType.A, A(9))
}

/** The zone as a transfer sends it. */
function printTransfer(stage: SigningStage): string {
  const reader = stage.image.reader()
  const name = new NameBuffer()
  name.set(APEX, 0, APEX.length)
  const lines: string[] = []
  const cursor = new VersionCursor(reader, reader.matchZone(name, 0))
  cursor.write({
    add: ({ owner, ownerOffset, type, ttlSeconds, rdata, rdataOffset, rdataOctets }, octets) => {
      const relative = owner.subarray(ownerOffset, ownerOffset + octets)
      const data = rdata.slice(rdataOffset, rdataOffset + rdataOctets)
      lines.push(printRecord(Buffer.concat([relative, APEX]), ttlSeconds, type, data))
      return true
    },
  })
  const soa = stage.contents().find(({ type }) => type === RRType.SOA)!
  lines.unshift(printRecord(soa.owner, soa.ttlSeconds, soa.type, soa.rdata[0]!))
  return `${lines.join('\n')}\n`
}

const POLICIES: readonly Partial<SigningPolicy>[] = [
  { denial: 'nsec' },
  { denial: 'nsec3' },
  { denial: 'nsec3', optOut: true },
]

const VERIFIERS: readonly [tool: string, args: readonly string[]][] = [
  ['ldns-verify-zone', ['-V', '2']],
  ['dnssec-verify', ['-x', '-o', 'example.']],
  ['kzonecheck', ['-d', 'on', '-o', 'example.']],
]

for (const [tool, args] of VERIFIERS) {
  t.test(`${tool} verifies signed zones`, needs(tool), async (t) => {
    const directory = temporaryDirectory(t)
    for (const policy of POLICIES) {
      const stage = new SigningStage(policy)
      // These programs compare times with the clock.
      stage.clock.pass(Date.now() - stage.clock.nowMs)
      fill(stage)
      for (const step of ['from nothing', 'after edits']) {
        await stage.publish()
        const path = join(directory, 'zone')
        writeFileSync(path, printTransfer(stage))
        const { code, stdout, stderr } = await run(tool, [...args, path])
        t.equal(code, 0, `${policy.denial} ${policy.optOut ?? ''} ${step}: ${stdout} ${stderr}`)
        edit(stage)
      }
    }
  })
}
